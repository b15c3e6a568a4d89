//! Functions by their symbols (TOPDOWN_FUNCTIONS). Where the compiler has put calls into them (-finstrument-functions) these tell
//! where one begins and ends (`instrument`); of others the first instructions are replaced by a jump (`hooks::patches`).

use crate::hooks::elf::{self, Object};
use crate::hooks::{FUNCTIONS, patches};
use crate::{instrument, process};

/// Has functions measured; to be called once, before the program begins.
pub fn start() {
    let mut patterns = FUNCTIONS.parse();
    if patterns.is_empty() || !process::active() {
        return;
    }
    let Some(objects) = elf::loaded() else {
        FUNCTIONS.say("no memory to look for them: none is measured");
        return;
    };
    let (instrumented, others): (Vec<Object>, Vec<Object>) =
        objects.into_iter().partition(|object| object.needs_symbol(c"__cyg_profile_func_enter"));
    let instrumented = instrument::find(instrumented, &mut patterns);
    patches::start(&patterns, &others);
    instrument::start(patterns, instrumented);
}
