//! Values that are costly to make, kept while the page asks about them.

use std::cell::RefCell;
use std::thread::LocalKey;

/// The page compares two settings, and a control moves back as often as forth.
const KEPT: usize = 4;

/// Values by the key that they were made from, the latest first.
pub type Kept<K, V> = RefCell<Vec<(K, V)>>;

/// The value kept under a key, or else the one that is made and kept.
pub fn recall<K: PartialEq, V: Clone>(
    store: &'static LocalKey<Kept<K, V>>,
    key: K,
    make: impl FnOnce(&K) -> Result<V, String>,
) -> Result<V, String> {
    let found =
        store.with_borrow(|kept| kept.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone()));
    if let Some(found) = found {
        return Ok(found);
    }
    let made = make(&key)?;
    store.with_borrow_mut(|kept| {
        kept.truncate(KEPT - 1);
        kept.insert(0, (key, made.clone()));
    });
    Ok(made)
}
