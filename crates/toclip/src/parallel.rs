//! Loops over independent items: on all cores with the feature `rayon`, else one after the other.
//!
//! The results are the same and in the same order either way.

#[cfg(feature = "rayon")]
pub(crate) use on_all_cores::{for_each_long, map_long, map_short, map_timed, try_map_long};
#[cfg(not(feature = "rayon"))]
pub(crate) use one_by_one::{
    for_each_long, map_long, map_long as map_timed, map_short, try_map_long,
};

#[cfg(feature = "rayon")]
mod on_all_cores {
    use rayon::prelude::*;
    use std::ops::Range;
    use std::time::{Duration, Instant};

    /// Below this a thread costs more than it saves.
    const WORTH_A_THREAD: Duration = Duration::from_micros(20);

    /// `f` of every item, each a task of its own if the first one takes long enough.
    pub(crate) fn map_timed<T: Sync, R: Send>(
        items: &[T],
        f: impl Fn(&T) -> R + Sync + Send,
    ) -> Vec<R> {
        let Some((first, rest)) = items.split_first() else { return Vec::new() };
        let start = Instant::now();
        let mut results = vec![f(first)];
        if start.elapsed() < WORTH_A_THREAD {
            results.extend(rest.iter().map(f));
        } else {
            results.append(&mut map_long(rest, f));
        }
        results
    }

    /// `f` of every item, where that takes less than a microsecond: pieces shorter than 256 items
    /// are not worth a thread.
    pub(crate) fn map_short<T: Sync, R: Send, E: Send>(
        items: &[T],
        f: impl Fn(&T) -> Result<R, E> + Sync + Send,
    ) -> Result<Vec<R>, E> {
        items.par_iter().with_min_len(256).map(f).collect()
    }

    /// `f` of every item, where each is a task of its own.
    pub(crate) fn map_long<T: Sync, R: Send>(
        items: &[T],
        f: impl Fn(&T) -> R + Sync + Send,
    ) -> Vec<R> {
        items.par_iter().with_max_len(1).map(f).collect()
    }

    /// The same until one is `None`, and then `None`; tasks under way are finished.
    pub(crate) fn try_map_long<T: Sync, R: Send>(
        items: &[T],
        f: impl Fn(&T) -> Option<R> + Sync + Send,
    ) -> Option<Vec<R>> {
        items.par_iter().with_max_len(1).map(f).collect()
    }

    /// `f` of every index, each a task of its own, until one returns false.
    pub(crate) fn for_each_long(range: Range<usize>, f: impl Fn(usize) -> bool + Sync + Send) {
        let go_on = |index| if f(index) { Ok(()) } else { Err(()) };
        let _: Result<(), ()> = range.into_par_iter().with_max_len(1).try_for_each(go_on);
    }
}

#[cfg(not(feature = "rayon"))]
mod one_by_one {
    use std::ops::Range;

    pub(crate) fn map_short<T, R, E>(
        items: &[T],
        f: impl Fn(&T) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        items.iter().map(f).collect()
    }

    pub(crate) fn map_long<T, R>(items: &[T], f: impl Fn(&T) -> R) -> Vec<R> {
        items.iter().map(f).collect()
    }

    pub(crate) fn try_map_long<T, R>(items: &[T], f: impl Fn(&T) -> Option<R>) -> Option<Vec<R>> {
        items.iter().map(f).collect()
    }

    pub(crate) fn for_each_long(mut range: Range<usize>, f: impl Fn(usize) -> bool) {
        let _ = range.all(f);
    }
}
