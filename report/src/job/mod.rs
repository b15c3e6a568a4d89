//! A job: one program in many processes, the ranks, each under a `topdown run` of its own, and one report of all of them.
//!
//! Each rank leaves what it measured in a directory beside the report, and who finds that no other rank still runs merges all that is
//! there (`directory`). What a rank leaves besides its table files is a file of JSON (`rank_file`).

mod bytes;
mod directory;
mod place;
mod rank_file;

pub use directory::{JobDirectory, JobReport, Joined, Left, is_job, report_of};
pub use place::JobPlace;
