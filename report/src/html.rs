//! The report as one page: as yet the text.
#![forbid(unsafe_code)]

use crate::model::Report;
use crate::text;

pub fn render(report: &Report) -> String {
    let text = text::render(report).replace('&', "&amp;").replace('<', "&lt;");
    format!("<!doctype html><meta charset=utf-8><title>topdown</title><pre>{text}</pre>\n")
}
