//! Cores as texts (`cpus/*.txt`, `cpus/deep/*.txt`). The build makes tables of the former (`build/tables.rs`), which are checked here; the
//! latter are read where somebody wants what is below the levels of those.

pub(crate) mod deep;
pub(crate) mod expression;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod names;
#[cfg(test)]
mod text;
pub(crate) mod words;

#[cfg(test)]
mod tests;
