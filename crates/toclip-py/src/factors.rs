//! Reduction factors at many points.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rayon::prelude::*;
use toclip::Factors;

use crate::args::arg;
use crate::convert::refuse;
use crate::noise::Noise;
use crate::pool::pooled;

type Column<'py> = Bound<'py, PyArray1<f64>>;

/// `(mu, m2, (nu, csc, ccc) or None)` at the points `(r[i], c[i])`; `None` if the noise has
/// infinite variance. Both arrays must have the same length.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "the shape that Python sees")]
pub fn factors<'py>(
    py: Python<'py>,
    noise: &Noise,
    #[pyo3(from_py_with = arg::r)] r: PyReadonlyArray1<'py, f64>,
    #[pyo3(from_py_with = arg::c)] c: PyReadonlyArray1<'py, f64>,
) -> PyResult<(Column<'py>, Column<'py>, Option<(Column<'py>, Column<'py>, Column<'py>)>)> {
    let (r, c) = (r.as_slice()?, c.as_slice()?);
    if r.len() != c.len() {
        return Err(refuse(format!("r has {} numbers and c has {}", r.len(), c.len())));
    }
    let noise = &*noise.inner;
    let finite = noise.second_moment().is_finite();
    let all = || {
        let [mut mu, mut m2, mut nu, mut csc, mut ccc] = [(); 5].map(|()| vec![f64::NAN; r.len()]);
        (
            r.par_iter(),
            c.par_iter(),
            mu.par_iter_mut(),
            m2.par_iter_mut(),
            nu.par_iter_mut(),
            csc.par_iter_mut(),
            ccc.par_iter_mut(),
        )
            .into_par_iter()
            // Closed forms take a fraction of a microsecond: shorter pieces would not pay a thread.
            .with_min_len(256)
            .try_for_each(|(&r, &c, mu, m2, nu, csc, ccc)| {
                let at = Factors::new(noise, r, c)?;
                (*mu, *m2) = (at.mu, at.m2);
                if finite {
                    (*nu, *csc, *ccc) = (at.nu()?, at.csc()?, at.ccc()?);
                }
                Ok(())
            })?;
        Ok([mu, m2, nu, csc, ccc])
    };
    let columns = py.detach(|| pooled(all))?.map_err(|error: toclip::Error| refuse(error))?;
    let [mu, m2, nu, csc, ccc] = columns.map(|column| column.into_pyarray(py));
    Ok((mu, m2, finite.then_some((nu, csc, ccc))))
}
