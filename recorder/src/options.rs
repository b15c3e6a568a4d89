//! `struct td_record_options`.

use std::mem::offset_of;
use std::ops::RangeInclusive;
use topdown::capi::{CallerStruct, read_by_size};
use topdown::{Error, Result};
use topdown_record::Settings;

/// How to record. All zeros, like NULL: 500 bursts a second and thread, for 1 % of the time, down to the deepest level.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordOptions {
    /// sizeof(struct td_record_options), set by the caller; 0 means 64. Sizes of other versions are read as in topdown.h.
    pub size: u32,
    /// Bursts per second and thread, up to 2000; 0 means 500.
    pub frequency: u32,
    /// 1, 2, or 0 for the deepest that the general-purpose counters have.
    pub level: u32,
    /// The part of a thread's time that bursts may take, by measurement, in parts per million, from 100 to 500000; 0 means 10000
    /// (1 %). Where `frequency` would take more there are fewer bursts, and the profile says so.
    pub max_overhead_ppm: u32,
    /// Cycles from one sample of a burst to the next, on average, from 300 to 100000; 0 means 1000. Functions that run for less
    /// cannot be told.
    pub gap: u64,
    /// Zeros.
    pub reserved: [u64; 5],
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// 0: the deepest.
    pub level: u32,
    pub settings: Settings,
}

// SAFETY: it is numbers without padding.
unsafe impl CallerStruct for RecordOptions {
    const NAME: &'static str = "td_record_options";
    const FIRST: usize = 64;
    const LEAST: usize = offset_of!(RecordOptions, reserved);
    const KNOWN: usize = offset_of!(RecordOptions, reserved);
}

const _: () = assert!(size_of::<RecordOptions>() == 64 && RecordOptions::LEAST == 24);

/// Reads and checks options.
///
/// # Safety
/// `options` is NULL or points to as many bytes as its first field says (64 if that is 0).
pub unsafe fn read(options: *const RecordOptions) -> Result<Wishes> {
    if options.is_null() {
        return interpret(&RecordOptions::default());
    }
    // SAFETY: the caller's word.
    interpret(&unsafe { read_by_size(options, "options") }?)
}

fn invalid(what: String) -> Error {
    Error::new(-libc::EINVAL, what)
}

fn interpret(options: &RecordOptions) -> Result<Wishes> {
    let within = |name: &str, value: u64, range: RangeInclusive<u64>| {
        if value == 0 || range.contains(&value) {
            return Ok(());
        }
        let (least, most) = range.into_inner();
        Err(invalid(format!("options->{name} is {value}"))
            .remedy(format!("use {least} to {most}, or 0 for the default")))
    };
    within("frequency", options.frequency.into(), 1..=2000)?;
    within("level", options.level.into(), 1..=2)?;
    within("max_overhead_ppm", options.max_overhead_ppm.into(), 100..=500_000)?;
    within("gap", options.gap, 300..=100_000)?;
    let mut settings = Settings::default();
    if options.frequency != 0 {
        settings.frequency = options.frequency;
    }
    if options.max_overhead_ppm != 0 {
        settings.budget = f64::from(options.max_overhead_ppm) / 1e6;
    }
    if options.gap != 0 {
        settings.gap = options.gap;
    }
    Ok(Wishes { level: options.level, settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(options: &RecordOptions) -> Result<Wishes> {
        // SAFETY: live options.
        unsafe { read(options) }
    }

    #[test]
    fn zeros_are_the_defaults_of_the_command() {
        for size in [0, 24, 64] {
            let Wishes { level, settings } = wishes(&RecordOptions { size, ..Default::default() }).unwrap();
            let Settings { frequency, gap, budget, .. } = settings;
            let default = Settings::default();
            assert_eq!((level, frequency, gap, budget), (0, default.frequency, default.gap, default.budget));
        }
        let all = RecordOptions {
            frequency: 2000,
            level: 1,
            max_overhead_ppm: 500_000,
            gap: 300,
            ..Default::default()
        };
        let Wishes { level, settings } = wishes(&all).unwrap();
        assert_eq!((level, settings.frequency, settings.gap, settings.budget), (1, 2000, 300, 0.5));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let zeros = RecordOptions::default();
        for (options, code, name) in [
            (RecordOptions { frequency: 2001, ..zeros }, libc::EINVAL, "options->frequency is 2001"),
            (RecordOptions { level: 3, ..zeros }, libc::EINVAL, "options->level is 3"),
            (RecordOptions { max_overhead_ppm: 99, ..zeros }, libc::EINVAL, "max_overhead_ppm is 99"),
            (RecordOptions { gap: 299, ..zeros }, libc::EINVAL, "options->gap is 299"),
            (RecordOptions { size: 23, ..zeros }, libc::EINVAL, "options->size is 23"),
            (RecordOptions { size: 4097, ..zeros }, libc::E2BIG, "options->size is 4097"),
            (RecordOptions { reserved: [0, 0, 0, 0, 1], ..zeros }, libc::E2BIG, "behind the fields"),
        ] {
            let error = wishes(&options).unwrap_err();
            assert_eq!(error.code(), -code);
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
