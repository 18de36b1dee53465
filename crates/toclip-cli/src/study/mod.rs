//! Studies that take more than one call: the paper's figures, and a fit to data. Commands share them.

pub mod claims;
pub mod explorer;
pub mod figure_section;
pub mod fit;
pub mod logistic_fit;
pub mod networks;
pub mod noise_fit_figure;
pub mod reproduce;
pub mod schedule_run;
