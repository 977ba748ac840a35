//! The filter: a program for the kernel that asks the listener about the calls
//! of the table and lets all others go on.

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF,
};

use crate::calls::{ARCHITECTURES, Condition, TABLE, WRITING, X32};
use crate::sys::Instruction;

/// Where the number, the architecture and the first argument are, in bytes.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> Instruction {
    let code = code as u16;
    Instruction { code, jt, jf, k }
}

fn load(at: u32) -> Instruction {
    instruction(BPF_LD | BPF_W | BPF_ABS, at, 0, 0)
}

fn and(mask: u32) -> Instruction {
    instruction(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0)
}

/// Goes on with the next instruction if equal, else skips `or_skip`.
fn if_equal(value: u32, or_skip: u8) -> Instruction {
    instruction(BPF_JMP | BPF_JEQ | BPF_K, value, 0, or_skip)
}

fn answer(action: u32) -> Instruction {
    instruction(BPF_RET | BPF_K, action, 0, 0)
}

/// Loads the low half of an argument. All flags and modes are 32 bits.
fn load_argument(at: usize) -> Instruction {
    let half = if cfg!(target_endian = "big") { 4 } else { 0 };
    load(ARGUMENTS + 8 * at as u32 + half)
}

/// Returns what decides about a call of a row. It answers in any case.
fn decide(condition: Condition) -> Vec<Instruction> {
    let (allow, ask) = (answer(SECCOMP_RET_ALLOW), answer(SECCOMP_RET_USER_NOTIF));
    match condition {
        Condition::Always => vec![ask],
        Condition::Writes(at) => vec![
            load_argument(at),
            instruction(BPF_JMP | BPF_JSET | BPF_K, WRITING, 0, 1),
            ask,
            allow,
        ],
        Condition::Regular(at) => vec![
            load_argument(at),
            and(libc::S_IFMT),
            instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
            if_equal(libc::S_IFREG, 1),
            ask,
            allow,
        ],
    }
}

/// Returns the program for this processor; `None` where the table has no
/// calls of it.
pub(crate) fn program() -> Option<Vec<Instruction>> {
    let mut program = vec![load(ARCHITECTURE)];
    for architecture in ARCHITECTURES {
        // x32 has the same numbers with one more bit; the supervisor sees it.
        let mut section = vec![load(NUMBER), and(!X32)];
        for row in TABLE.iter().filter(|row| row.architecture == *architecture) {
            let decision = decide(row.condition());
            section.push(if_equal(row.number, u8::try_from(decision.len()).ok()?));
            section.extend(decision);
        }
        section.push(answer(SECCOMP_RET_ALLOW));
        program.push(if_equal(
            *architecture as u32,
            u8::try_from(section.len()).ok()?,
        ));
        program.extend(section);
    }
    program.push(answer(SECCOMP_RET_ALLOW));
    (!ARCHITECTURES.is_empty()).then_some(program)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::calls::Architecture;

    /// Runs the program as the kernel would.
    fn run(program: &[Instruction], architecture: u32, number: u32, arguments: [u64; 6]) -> bool {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(architecture.to_le_bytes());
        data.extend([0; 8]);
        data.extend(arguments.iter().flat_map(|word| word.to_le_bytes()));
        let (mut at, mut accumulator) = (0, 0_u32);
        loop {
            let one = &program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { one.jt } else { one.jf });
            match u32::from(one.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    let bytes = data[one.k as usize..].first_chunk().unwrap();
                    accumulator = u32::from_le_bytes(*bytes);
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => accumulator &= one.k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => at += jump(accumulator == one.k),
                code if code == BPF_JMP | BPF_JSET | BPF_K => at += jump(accumulator & one.k != 0),
                code if code == BPF_RET | BPF_K => return one.k == SECCOMP_RET_USER_NOTIF,
                code => panic!("{code}"),
            }
        }
    }

    #[test]
    fn asks_for_what_writes_and_for_nothing_else() {
        let program = program().unwrap();
        let asks = |row: &crate::calls::Row, argument: usize, value: i64| {
            let mut arguments = [u64::MAX << 32; 6];
            arguments[argument] = value as u64;
            run(&program, row.architecture as u32, row.number, arguments)
        };
        let mut rows = 0;
        for row in TABLE {
            if !ARCHITECTURES.contains(&row.architecture) {
                continue;
            }
            rows += 1;
            match row.condition() {
                Condition::Always => assert!(asks(row, 0, 0), "{row:?}"),
                Condition::Writes(at) => {
                    let reads = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_DIRECTORY;
                    assert!(!asks(row, at, reads.into()), "{row:?}");
                    assert!(!asks(row, at, libc::O_PATH.into()), "{row:?}");
                    let write = [libc::O_WRONLY, libc::O_RDWR, libc::O_TRUNC, libc::O_CREAT];
                    for flag in write.into_iter().chain([libc::O_TMPFILE | libc::O_RDWR]) {
                        assert!(asks(row, at, flag.into()), "{row:?} {flag}");
                    }
                }
                Condition::Regular(at) => {
                    for mode in [libc::S_IFIFO, libc::S_IFCHR, libc::S_IFSOCK, libc::S_IFBLK] {
                        assert!(!asks(row, at, i64::from(mode | 0o600)), "{row:?}");
                    }
                    assert!(asks(row, at, i64::from(libc::S_IFREG | 0o600)));
                    assert!(asks(row, at, 0o600));
                }
            }
        }
        assert!(rows > 12);
        let all = [u64::MAX; 6];
        let native = ARCHITECTURES[0] as u32;
        for architecture in [native, ARCHITECTURES[1] as u32, 0x1234] {
            let in_table = |number: u32| {
                TABLE
                    .iter()
                    .any(|row| row.architecture as u32 == architecture && row.number == number)
            };
            for number in (0..600).filter(|number| !in_table(*number)) {
                assert!(!run(&program, architecture, number, all), "{number}");
            }
        }
        if native == Architecture::X86_64 as u32 {
            assert!(run(&program, native, 257 | X32, all));
            assert!(!run(&program, native, X32, all));
        }
        assert!(program.len() < 4096);
    }
}
