//! Cores as texts (`cpus/*.txt`), of which the build makes tables (`build/tables.rs`). Here they are checked.

mod expression;
mod groups;
mod names;
mod text;

#[cfg(test)]
mod tests;
