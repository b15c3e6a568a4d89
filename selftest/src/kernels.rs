//! Microkernels whose bottleneck follows from what they are. Each call runs one stretch of it.
#![allow(unsafe_code)]

use std::arch::asm;
use std::io;
use std::ptr::null_mut;
use topdown_seam::random::Random;

/// Executes about this many instructions, and nothing else.
pub fn work(instructions: u64) {
    // SAFETY: counts down a register.
    unsafe {
        asm!("2: dec {turns}", "jnz 2b", turns = inout(reg) instructions / 2 + 1 => _, options(nomem, nostack));
    }
}

/// Adds that wait for nothing: eight chains, more than a core has adders.
pub fn adds(rounds: u64) {
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            ".rept 8",
            "add rax, rdi", "add rcx, rdi", "add rdx, rdi", "add rsi, rdi",
            "add r8, rdi", "add r9, rdi", "add r10, rdi", "add r11, rdi",
            ".endr",
            "dec {turns}", "jnz 2b",
            turns = inout(reg) rounds + 1 => _,
            in("rdi") 3u64,
            out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            options(nomem, nostack),
        );
    }
}

/// Divides that each wait for the one before: 3.7 / x, again and again, whose values neither grow nor become
/// simple. Nothing is loaded.
pub fn divides(rounds: u64) -> f64 {
    let mut x = 1.3f64;
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            ".rept 8",
            "movapd {t}, {c}", "divsd {t}, {x}", "movapd {x}, {t}",
            ".endr",
            "dec {turns}", "jnz 2b",
            turns = inout(reg) rounds + 1 => _,
            x = inout(xmm_reg) x,
            t = out(xmm_reg) _,
            c = in(xmm_reg) 3.7f64,
            options(nomem, nostack),
        );
    }
    x
}

/// A branch that goes either way at random and is known late, as its number comes from a chain of three
/// multiplications: until then the core fills its slots from the path that it guessed, which is every other time the
/// wrong one.
pub fn branches(rounds: u64, seed: &mut u64) -> u64 {
    let mut taken = 0u64;
    // SAFETY: registers only.
    unsafe {
        asm!(
            "2:",
            // splitmix64: the state moves on by an addition, so only the branch waits for the multiplications
            "add {seed}, {step}",
            "mov {x}, {seed}",
            "mov {y}, {x}", "shr {y}, 30", "xor {x}, {y}", "imul {x}, {m}",
            "mov {y}, {x}", "shr {y}, 27", "xor {x}, {y}", "imul {x}, {m}",
            "mov {y}, {x}", "shr {y}, 31", "xor {x}, {y}", "imul {x}, {m}",
            "bt {x}, 61",
            "jc 3f",
            "inc {taken}",
            "3:",
            "dec {turns}", "jnz 2b",
            turns = inout(reg) rounds + 1 => _,
            seed = inout(reg) *seed,
            taken = inout(reg) taken,
            x = out(reg) _,
            y = out(reg) _,
            step = in(reg) 0x9e37_79b9_7f4a_7c15u64,
            m = in(reg) 0xbf58_476d_1ce4_e5b9u64,
            options(nomem, nostack),
        );
    }
    taken
}

/// A cache line that holds the address of the next.
#[repr(align(64))]
#[derive(Clone)]
struct CacheLine(*const CacheLine);

/// A chain of loads through memory in random order, each from where the one before says.
pub struct Chase {
    lines: Vec<CacheLine>,
    at: *const CacheLine,
}

impl Chase {
    /// So many bytes in one cycle (Sattolo's permutation).
    pub fn new(bytes: usize) -> Chase {
        let count = (bytes / size_of::<CacheLine>()).max(2);
        let mut order: Vec<u32> = (0..count as u32).collect();
        let mut random = Random::new(1);
        for i in (1..count).rev() {
            order.swap(i, random.below(i as u64) as usize);
        }
        let mut lines = vec![CacheLine(null_mut()); count];
        let first = lines.as_ptr();
        for (line, next) in lines.iter_mut().zip(&order) {
            line.0 = first.wrapping_add(*next as usize);
        }
        Chase { lines, at: first }
    }

    /// So many steps of sixteen loads; returns the number of the line where it stops.
    pub fn run(&mut self, steps: u64) -> usize {
        // SAFETY: each line has the address of a line, and they are as long-lived as this.
        unsafe {
            asm!(
                "2:",
                ".rept 16", "mov {at}, qword ptr [{at}]", ".endr",
                "dec {turns}", "jnz 2b",
                turns = inout(reg) steps + 1 => _,
                at = inout(reg) self.at,
                options(readonly, nostack),
            );
        }
        (self.at as usize - self.lines.as_ptr() as usize) / size_of::<CacheLine>()
    }
}

/// Machine code made at run time: `fn(u64) -> u64`.
pub struct MachineCode {
    place: *mut u8,
    length: usize,
}

impl MachineCode {
    /// Code at a place of its own, which it may write to if `writable`.
    fn new(code: &[u8], writable: bool) -> io::Result<MachineCode> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let place = unsafe { libc::mmap(null_mut(), code.len(), protection, flags, -1, 0) };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let made = MachineCode { place: place.cast(), length: code.len() };
        // SAFETY: the mapping is as long as the code, and ours alone.
        unsafe { made.place.copy_from_nonoverlapping(code.as_ptr(), code.len()) };
        let protection = if writable { protection } else { libc::PROT_READ } | libc::PROT_EXEC;
        // SAFETY: our own mapping, to which there are no references.
        if unsafe { libc::mprotect(place, made.length, protection) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(made)
    }

    /// A walk over a large footprint: blocks of 64 bytes, each of which jumps to the next, in random order, so that caches
    /// of instructions, their TLB and the table of branches miss. One call is one walk and returns the number of
    /// blocks.
    pub fn jumps(bytes: usize) -> io::Result<MachineCode> {
        const BLOCK: usize = 64;
        let count = (bytes / BLOCK).max(2);
        let mut order: Vec<usize> = (1..count).collect();
        let mut random = Random::new(2);
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        let mut code = vec![0xcc; count * BLOCK];
        let walk: Vec<usize> = std::iter::once(0).chain(order).collect();
        for (i, block) in walk.iter().enumerate() {
            let mut bytes = Vec::with_capacity(16);
            if i == 0 {
                bytes.extend([0x31, 0xc0]); // xor eax, eax
            }
            bytes.extend([0x48, 0xff, 0xc0]); // inc rax
            match walk.get(i + 1) {
                Some(next) => {
                    let end = block * BLOCK + bytes.len() + 5;
                    bytes.push(0xe9); // jmp
                    bytes.extend(
                        (next * BLOCK).wrapping_sub(end).to_le_bytes().first_chunk::<4>().expect("of eight"),
                    );
                }
                None => bytes.push(0xc3), // ret
            }
            code[block * BLOCK..][..bytes.len()].copy_from_slice(&bytes);
        }
        MachineCode::new(&code, false)
    }

    /// A loop that writes the number of turns that are left into its own next instruction, and returns what that one
    /// loaded, summed up over all turns: n + (n - 1) + ... + 1, if each write was seen.
    pub fn modifying() -> io::Result<MachineCode> {
        MachineCode::new(
            &[
                0x31, 0xc0, // xor eax, eax
                0x89, 0x3d, 1, 0, 0, 0, // 2: mov [rip + 1], edi
                0xb9, 0, 0, 0, 0, // mov ecx, 0, which the line before writes to
                0x48, 0x01, 0xc8, // add rax, rcx
                0x48, 0xff, 0xcf, // dec rdi
                0x75, 0xed, // jnz 2b
                0xc3, // ret
            ],
            true,
        )
    }

    /// Calls it.
    pub fn call(&self, argument: u64) -> u64 {
        // SAFETY: what was put there follows the C calling convention: it takes rdi, returns rax, and changes rcx.
        unsafe {
            let code: extern "C" fn(u64) -> u64 = std::mem::transmute(self.place);
            code(argument)
        }
    }
}

impl Drop for MachineCode {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new`, and is called no more.
        unsafe { libc::munmap(self.place.cast(), self.length) };
    }
}

/// On the emulated machine: how the slots of this thread truly divide (c-tests/vm/mix.h). Retiring, bad speculation and
/// frontend bound in 1/64 of slots; heavy operations, branch mispredicts, fetch latency and memory bound in 1/16 of their
/// parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotMix {
    pub retiring: u64,
    pub bad: u64,
    pub frontend: u64,
    pub heavy: u64,
    pub mispredicts: u64,
    pub latency: u64,
    pub memory: u64,
}

/// Sets the mix of the code that follows, one instruction per cycle; each counts as 16^warp. None: the default. Only the
/// emulated machine knows it.
pub fn set_mix(mix: Option<SlotMix>, warp: u64) {
    const ARCH_SET_GS: u64 = 0x1001;
    let value = mix.map_or(0, |m| {
        (if warp > 0 { 0x2b } else { 0x2a }) << 41
            | m.retiring << 34
            | m.bad << 28
            | m.frontend << 22
            | m.heavy << 18
            | m.mispredicts << 14
            | m.latency << 10
            | m.memory << 6
            | warp
    });
    // SAFETY: no program of x86-64 Linux uses GS, unless it does so itself.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, value) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chase_visits_each_line_before_it_comes_back() {
        let mut chase = Chase::new(64 * 64);
        let mut seen = vec![0; 64];
        for _ in 0..64 {
            let start = chase.at;
            seen[chase.run(3)] += 1; // 64 loads: once around
            assert_eq!(chase.at, start);
            // SAFETY: a line of the chase.
            chase.at = unsafe { (*chase.at).0 };
        }
        assert!(seen.iter().all(|times| *times == 1), "{seen:?}");
    }

    #[test]
    fn the_walk_passes_through_each_block_once() {
        for blocks in [2, 3, 1000] {
            assert_eq!(MachineCode::jumps(64 * blocks).unwrap().call(0), blocks as u64);
        }
    }

    #[test]
    fn the_loop_that_modifies_itself_sees_what_it_wrote() {
        assert_eq!(MachineCode::modifying().unwrap().call(1000), 500_500);
    }

    #[test]
    fn the_branch_goes_either_way_as_often() {
        let taken = branches(100_000, &mut 0);
        assert!((49_000..51_000).contains(&taken), "{taken}");
    }

    #[test]
    fn the_divides_go_on_with_values_of_the_same_size() {
        assert!((1.0..4.0).contains(&divides(1000)));
        adds(1000);
        work(1000);
    }
}
