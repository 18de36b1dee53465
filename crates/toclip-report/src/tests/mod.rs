//! Sample reports, and their pages in a real browser.

#[path = "../../tests/browser/mod.rs"]
mod browser;
mod page_in_browser;
pub(crate) mod sample;
