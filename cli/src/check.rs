//! `topdown check`: what can be measured here.

use std::process::ExitCode;
use topdown::{Options, TopDown};

/// Options of `topdown check`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Try on this machine what could only be tried on an emulated one, and report it; takes some 30 seconds.
    #[arg(long)]
    selftest: bool,
    /// Write the report to FILE instead of standard output.
    #[arg(short, long, value_name = "FILE", requires = "selftest")]
    output: Option<std::path::PathBuf>,
}

/// Exit status 0 if the default open works, 1 if not.
pub fn run(arguments: &Arguments) -> ExitCode {
    if arguments.selftest {
        return crate::selftest::run(arguments.output.as_deref());
    }
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
