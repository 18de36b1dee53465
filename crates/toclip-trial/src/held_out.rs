//! Problems that no rule of this crate was developed on.

use crate::Problem;
use toclip::Result;
use toclip::noise::{
    Component, Family, Gaussian, Laplace, Mixture, NoNoise, Rademacher, StudentT, Uniform,
};
use toclip::spectrum::{Block, Spectrum};

impl Problem {
    /// A second set: other noises, spectra, batch sizes and starts than
    /// [`standard`](Self::standard).
    ///
    /// It was fixed before `EmpiricalCcc` was tuned, and that rule
    /// was not run on it until its constants were final. Keep it so: a rule that is developed on
    /// these needs new ones.
    ///
    /// ```
    /// use toclip_trial::Problem;
    /// let all = Problem::held_out()?;
    /// assert_eq!(all.len(), 30);
    /// assert!(all.iter().any(|p| p.name() == "sign noise/1"));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn held_out() -> Result<Vec<Self>> {
        let isotropic = Spectrum::isotropic(120)?;
        let steep = Spectrum::power_law(400, 0.5)?;
        let random = Spectrum::marchenko_pastur(200, 0.5)?;
        let block = |value, multiplicity| Block { value, multiplicity };
        let blocks = Spectrum::from_blocks(&[block(1.0, 10), block(0.1, 200)])?;
        let mixture = |parts: &[(f64, f64, f64)]| -> Result<Family> {
            let part = |&(weight, mean, std)| Component { weight, mean, std };
            Ok(Mixture::new(&parts.iter().map(part).collect::<Vec<_>>())?.into())
        };
        let linear: [(&str, &Spectrum, f64, Family, &[usize]); 15] = [
            ("student 3", &isotropic, 2.0, StudentT::from_sigma(3.0, 1.0)?.into(), &[1, 16]),
            ("student 1.5", &steep, 0.5, StudentT::new(1.5, 0.5)?.into(), &[1, 4]),
            ("wide cauchy", &random, 2.0, StudentT::new(1.0, 2.0)?.into(), &[1, 128]),
            (
                "rare large",
                &isotropic,
                2.0,
                mixture(&[(0.99, 0.0, 0.3), (0.01, 0.0, 9.5)])?,
                &[1, 32],
            ),
            ("sign half", &steep, 2.0, Rademacher::from_sigma(1.0, 0.5)?.into(), &[1, 4]),
            ("sign rare", &random, 2.0, Rademacher::from_sigma(1.0, 0.02)?.into(), &[1, 16]),
            ("sign noise", &blocks, 2.0, Rademacher::from_sigma(1.0, 1.0)?.into(), &[1]),
            ("laplace far", &blocks, 8.0, Laplace::new(1.0)?.into(), &[1, 2]),
            ("gaussian far", &steep, 8.0, Gaussian::new(1.0)?.into(), &[1, 4]),
            ("gaussian near", &random, 0.05, Gaussian::new(1.0)?.into(), &[1]),
            ("uniform near", &isotropic, 0.5, Uniform::from_sigma(1.0)?.into(), &[1, 2]),
            ("two modes", &random, 2.0, mixture(&[(0.5, -1.0, 0.3), (0.5, 1.0, 0.3)])?, &[1]),
            ("skewed", &steep, 2.0, mixture(&[(0.8, -0.5, 0.3), (0.2, 2.0, 0.3)])?, &[1, 8]),
            ("none isotropic", &isotropic, 2.0, NoNoise.into(), &[2]),
            ("none blocks", &blocks, 2.0, NoNoise.into(), &[1]),
        ];
        let logistic: [(&str, &Spectrum, f64, f64, &[usize]); 3] = [
            ("logistic 5%, margin 2", &isotropic, 2.0, 0.05, &[1, 4]),
            ("logistic 20%, margin 8", &random, 8.0, 0.2, &[1, 16]),
            ("logistic 0%, margin 8", &steep, 8.0, 0.0, &[2]),
        ];
        let mut all = Vec::new();
        for (group, spectrum, start_risk, noise, batches) in linear {
            for batch in batches {
                let noise = noise.clone();
                all.push(Self::least_squares(group, spectrum, start_risk, noise, *batch)?);
            }
        }
        for (group, spectrum, margin, flip, batches) in logistic {
            for batch in batches {
                all.push(Self::logistic(group, spectrum, margin, flip, *batch)?);
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_problem_is_in_both_sets() {
        let held_out = Problem::held_out().unwrap();
        let standard = Problem::standard().unwrap();
        let names: std::collections::BTreeSet<String> =
            held_out.iter().chain(&standard).map(Problem::name).collect();
        assert_eq!(names.len(), held_out.len() + standard.len());
        assert!(3 * held_out.len() >= standard.len());
    }
}
