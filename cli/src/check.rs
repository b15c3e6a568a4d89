//! `topdown check`: what can be measured here.

use std::process::ExitCode;
use topdown::{Options, TopDown};

/// Options of `topdown check`.
#[derive(clap::Args)]
pub struct Arguments {}

/// Exit status 0 if the default open works, 1 if not.
pub fn run(_: &Arguments) -> ExitCode {
    match TopDown::open(&Options::default()).and_then(|td| td.info()) {
        Ok(info) => {
            println!("{}: level {} of {} by {:?}", info.cpu, info.level, info.core, info.path);
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
