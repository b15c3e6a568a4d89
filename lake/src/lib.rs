//! A report as a long table (docs/lake.md): rows of what is measured, node by node, as amounts that add up. `rows` are made of the
//! report's model, `file` writes them. A crate of its own, since the libraries that have reports shall not grow by what writes Parquet.
#![forbid(unsafe_code)]

mod file;
mod rows;

pub use file::write;
