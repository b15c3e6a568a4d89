//! Functions whose first instructions are replaced by a jump: none on arm64, and a line says so.

use super::FUNCTIONS;
use super::elf::Object;
use super::patterns::Pattern;

/// Says that no function is patched.
pub fn start(patterns: &[Pattern], _objects: &[Object]) {
    if patterns.iter().any(|pattern| pattern.found == 0) {
        FUNCTIONS.say(
            "on arm64 functions are measured that were built with -finstrument-functions, and no others",
        );
    }
}

/// Whether a function is measured by its first instructions.
pub fn is_patched(_address: usize) -> bool {
    false
}

/// Whether something has to be said in the end: `start` has said it.
pub fn may_complain() -> bool {
    false
}

/// Says nothing.
pub fn complain() {}
