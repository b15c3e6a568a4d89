#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| topdown_metric_files::fuzz::metric_file(bytes));
