//! A job: one program in many processes, the ranks, each under a `topdown run` of its own, and one report of all of them.
//!
//! Each rank leaves what it measured in a directory beside the report, and who finds that no other rank still runs merges all that is
//! there (`directory`). Which ones run says one file (`lives`), and what they left one for each host (`host_file`): tables, and what
//! each rank says of itself, as JSON (`rank_file`).

mod bytes;
mod directory;
mod host_file;
mod lives;
mod place;
mod rank_file;

pub use directory::{JobDirectory, JobReport, Joined, Left, is_job, report_of};
pub use place::JobPlace;
