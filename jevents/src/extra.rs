//! `struct jevent_extra`: what of an event goes to C besides its attr. Callers read `pmus`, and may free it by globfree;
//! they make such structs themselves, too, all zero.
use crate::capi::copy;
use crate::resolve::ResolvedEvent;
use libc::{c_char, c_int, glob_t};
use std::ffi::CStr;
use std::mem::take;
use std::path::PathBuf;
use std::ptr::null_mut;

/// As in jevents.h.
#[repr(C)]
pub struct Extra {
    /// From a name= term; of malloc.
    pub name: *mut c_char,
    /// What was resolved; of malloc.
    pub decoded: *mut c_char,
    /// Several PMUs count it.
    pub multi_pmu: bool,
    /// Their sysfs paths; freed by globfree.
    pub pmus: glob_t,
    /// The next of them.
    pub next_pmu: c_int,
}

impl Default for Extra {
    fn default() -> Self {
        // SAFETY: numbers and pointers, which zero is a value of.
        unsafe { std::mem::zeroed() }
    }
}

impl Extra {
    /// For C to free. The attr names the first PMU: the next is the second.
    pub fn from_resolved(resolved: ResolvedEvent) -> Extra {
        let pmus: Vec<_> = resolved.pmus.iter().map(|path| copy(path)).collect();
        Extra {
            name: resolved.name.map_or(null_mut(), |name| copy(&name)),
            decoded: copy(&resolved.decoded),
            multi_pmu: resolved.multi_pmu,
            pmus: paths(pmus),
            next_pmu: c_int::from(resolved.multi_pmu),
        }
    }

    /// Frees what it has; it is empty then.
    pub fn free(&mut self) {
        let mut old = take(self);
        old.drop_decoded();
        // SAFETY: of malloc, and in no other place now.
        unsafe {
            libc::free(old.name.cast());
            libc::globfree(&mut old.pmus);
        }
    }

    /// Frees what was resolved.
    pub fn drop_decoded(&mut self) {
        // SAFETY: of malloc, and in no other place.
        unsafe { libc::free(std::mem::replace(&mut self.decoded, null_mut()).cast()) }
    }

    /// A copy of name, decoded and PMUs, of which none is next.
    pub fn copy_of(other: &Extra) -> Extra {
        Extra {
            name: duplicate(other.name),
            decoded: duplicate(other.decoded),
            pmus: paths(other.paths().iter().map(|path| duplicate(*path)).collect()),
            ..Extra::default()
        }
    }

    /// The name of a PMU; it lives as long as the struct.
    pub fn pmu_name(&self, number: usize) -> Option<&CStr> {
        let bytes = self.path(number)?.to_bytes_with_nul();
        let after_slash = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        CStr::from_bytes_with_nul(&bytes[after_slash..]).ok()
    }

    /// The path of the next PMU, if there are several, and one more.
    pub fn next_path(&mut self) -> Option<PathBuf> {
        let next = usize::try_from(self.next_pmu).ok().filter(|_| self.multi_pmu)?;
        let path = self.path(next)?.to_string_lossy().into_owned();
        self.next_pmu += 1;
        Some(path.into())
    }

    fn path(&self, number: usize) -> Option<&CStr> {
        let path = *self.paths().get(number)?;
        // SAFETY: a C string of the struct.
        (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
    }

    fn paths(&self) -> &[*mut c_char] {
        let glob_t { gl_pathc, gl_pathv, gl_offs, .. } = self.pmus;
        if gl_pathv.is_null() {
            return &[];
        }
        // SAFETY: glob(3) says that the array has so many after its first gl_offs.
        unsafe { std::slice::from_raw_parts(gl_pathv.add(gl_offs), gl_pathc) }
    }
}

/// What glob(3) would have found; nothing if there is no memory.
fn paths(strings: Vec<*mut c_char>) -> glob_t {
    // SAFETY: numbers and pointers, which zero is a value of; the array has room for the strings and a NULL.
    unsafe {
        let mut found: glob_t = std::mem::zeroed();
        let array: *mut *mut c_char = libc::calloc(strings.len() + 1, size_of::<*mut c_char>()).cast();
        if array.is_null() || strings.contains(&null_mut()) {
            strings.into_iter().for_each(|string| libc::free(string.cast()));
            libc::free(array.cast());
            return found;
        }
        array.copy_from_nonoverlapping(strings.as_ptr(), strings.len());
        (found.gl_pathc, found.gl_pathv) = (strings.len(), array);
        found
    }
}

fn duplicate(string: *const c_char) -> *mut c_char {
    // SAFETY: not NULL: a C string of the struct.
    if string.is_null() { null_mut() } else { unsafe { libc::strdup(string) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use topdown_seam::attr;

    fn resolved(pmus: &[&str]) -> ResolvedEvent {
        ResolvedEvent {
            attr: attr::new(12),
            name: Some("n".into()),
            decoded: "imc/x/".into(),
            multi_pmu: pmus.len() > 1,
            pmus: pmus.iter().map(|path| path.to_string()).collect(),
        }
    }

    fn text(string: *const c_char) -> Option<String> {
        // SAFETY: NULL, or one of ours.
        unsafe { crate::capi::text(string) }.map(|text| text.into_owned())
    }

    #[test]
    fn what_c_sees() {
        let mut extra = Extra::from_resolved(resolved(&["/d/uncore_imc_0", "/d/uncore_imc_1"]));
        assert_eq!((text(extra.name), text(extra.decoded)), (Some("n".into()), Some("imc/x/".into())));
        assert_eq!((extra.pmus.gl_pathc, extra.pmus.gl_offs), (2, 0));
        // SAFETY: an array of three.
        let last = unsafe { (*extra.pmus.gl_pathv.add(1), *extra.pmus.gl_pathv.add(2)) };
        assert_eq!((text(last.0), last.1), (Some("/d/uncore_imc_1".into()), null_mut()));
        assert_eq!(extra.pmu_name(1), Some(c"uncore_imc_1"));
        assert_eq!(extra.pmu_name(2), None);
        let mut clone = Extra::copy_of(&extra);
        assert_ne!(clone.name, extra.name);
        extra.free();
        assert!(
            extra.name.is_null()
                && extra.decoded.is_null()
                && extra.pmus.gl_pathv.is_null()
                && !extra.multi_pmu
        );
        extra.free();
        assert_eq!((text(clone.name), text(clone.decoded)), (Some("n".into()), Some("imc/x/".into())));
        assert_eq!((clone.multi_pmu, clone.next_pmu, clone.pmu_name(0)), (false, 0, Some(c"uncore_imc_0")));
        clone.free();
    }

    #[test]
    fn the_second_pmu_is_next() {
        let mut several = Extra::from_resolved(resolved(&["/a", "/b", "/c"]));
        assert_eq!(several.next_path(), Some("/b".into()));
        assert_eq!(several.next_path(), Some("/c".into()));
        assert_eq!(several.next_path(), None);
        assert_eq!(several.next_path(), None);
        several.free();
        let mut one = Extra::from_resolved(resolved(&["/a"]));
        assert_eq!((one.next_pmu, one.next_path()), (0, None));
        one.free();
    }

    #[test]
    fn one_of_zeros_is_empty() {
        let mut zero = Extra::default();
        assert_eq!(zero.pmu_name(0), None);
        assert_eq!(zero.next_path(), None);
        let mut copy = Extra::copy_of(&zero);
        copy.free();
        zero.free();
    }
}
