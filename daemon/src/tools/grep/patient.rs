//! A matcher that stops when its search must, even within one long line.
//!
//! The library searches a line, or with `multiline` a file, in one call that
//! cannot be interrupted. So it gets at most [`WINDOW`] bytes at a time here,
//! in whole lines. Longer lines are searched byte by byte with an automaton
//! that is built on the way; it has no shortcuts, and can stop anywhere.

use std::cell::{OnceCell, RefCell};
use std::fmt;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;
use regex_automata::hybrid::dfa::{Cache as Half, DFA};
use regex_automata::hybrid::regex::{Cache, Regex};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use touchmark_proto::search::SearchGrep;

use super::stop::Stop;
use super::{CACHE_BYTES, PROGRAM_BYTES};

/// The number of bytes that the library searches in one call, unless a line is
/// longer. The slowest pattern takes about 15 µs for each byte.
const WINDOW: usize = 16 << 10;

/// The number of bytes between two looks at the clock.
const STRIDE: usize = 256;

/// Why a search has no result.
#[derive(Debug)]
pub(super) enum Ended {
    /// The search had to stop.
    Stopped,
    /// The line is too long, and no automaton that can stop can be built for
    /// the pattern.
    TooLong,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "the search was ended",
            Self::TooLong => "a line is too long for the pattern",
        })
    }
}

/// A matcher that can stop; see the module.
pub(super) struct Patient<'a> {
    library: RegexMatcher,
    ask: &'a SearchGrep,
    stop: &'a Stop,
    /// Built for the first long line; `None` inside if it cannot be built.
    stepwise: OnceCell<Option<Stepwise>>,
}

struct Stepwise {
    regex: Regex,
    cache: RefCell<Cache>,
}

impl<'a> Patient<'a> {
    /// Creates a matcher. `library` is the compiled pattern of `ask`.
    pub(super) fn new(library: RegexMatcher, ask: &'a SearchGrep, stop: &'a Stop) -> Self {
        Self {
            library,
            ask,
            stop,
            stepwise: OnceCell::new(),
        }
    }

    fn ended(&self) -> Result<(), Ended> {
        match self.stop.is_due() {
            true => Err(Ended::Stopped),
            false => Ok(()),
        }
    }

    fn quick(&self, haystack: &[u8], at: usize) -> Option<Match> {
        // The library's error type has no values.
        self.library.find_at(haystack, at).unwrap_or_default()
    }

    fn slow(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Ended> {
        let built = self.stepwise.get_or_init(|| Stepwise::new(self.ask));
        let stepwise = built.as_ref().ok_or(Ended::TooLong)?;
        stepwise.find(haystack, at, self.stop)
    }

    /// Searches line by line, since no match crosses a line end.
    fn in_lines(&self, haystack: &[u8], mut at: usize) -> Result<Option<Match>, Ended> {
        while haystack.len().saturating_sub(at) > WINDOW {
            self.ended()?;
            let end = memchr::memrchr(b'\n', &haystack[at..at + WINDOW]);
            let (found, end) = match end.map(|end| at + end) {
                Some(end) => (self.quick(&haystack[..end], at), end),
                None => {
                    let end = memchr::memchr(b'\n', &haystack[at..]);
                    let end = end.map_or(haystack.len(), |end| at + end);
                    (self.slow(&haystack[..end], at)?, end)
                }
            };
            if found.is_some() || end == haystack.len() {
                return Ok(found);
            }
            at = end + 1;
        }
        Ok(self.quick(haystack, at))
    }
}

impl Matcher for Patient<'_> {
    type Captures = NoCaptures;
    type Error = Ended;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Ended> {
        if haystack.len().saturating_sub(at) <= WINDOW {
            return Ok(self.quick(haystack, at));
        }
        match self.ask.multiline {
            true => self.slow(haystack, at),
            false => self.in_lines(haystack, at),
        }
    }

    fn new_captures(&self) -> Result<NoCaptures, Ended> {
        Ok(NoCaptures::new())
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.library.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.library.line_terminator()
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, Ended> {
        if haystack.len() > WINDOW {
            let found = self.find_at(haystack, 0)?;
            return Ok(found.map(|found| LineMatchKind::Confirmed(found.start())));
        }
        Ok(self
            .library
            .find_candidate_line(haystack)
            .unwrap_or_default())
    }
}

impl Stepwise {
    /// Builds an automaton with the library's meaning of the pattern; `None` if
    /// that is not possible.
    fn new(ask: &SearchGrep) -> Option<Self> {
        let regex = Regex::builder()
            .syntax(
                syntax::Config::new()
                    .utf8(false)
                    .multi_line(true)
                    .case_insensitive(ask.case_insensitive),
            )
            .thompson(
                thompson::Config::new()
                    .utf8(false)
                    .nfa_size_limit(Some(PROGRAM_BYTES)),
            )
            .dfa(
                DFA::config()
                    .cache_capacity(CACHE_BYTES)
                    .skip_cache_capacity_check(true)
                    .unicode_word_boundary(true),
            )
            .build(&ask.pattern)
            .inspect_err(|error| tracing::debug!("search: no automaton: {error}"))
            .ok()?;
        let cache = RefCell::new(regex.create_cache());
        Some(Self { regex, cache })
    }

    fn find(&self, haystack: &[u8], at: usize, stop: &Stop) -> Result<Option<Match>, Ended> {
        let mut cache = self.cache.borrow_mut();
        let (forward, reverse) = cache.as_parts_mut();
        let input = Input::new(haystack).range(at..);
        let Some(end) = last(self.regex.forward(), forward, &input, true, stop)? else {
            return Ok(None);
        };
        let input = Input::new(haystack).range(at..end).anchored(Anchored::Yes);
        let start = last(self.regex.reverse(), reverse, &input, false, stop)?;
        Ok(start.map(|start| Match::new(start, end)))
    }
}

/// Returns the position of the last match that an automaton finds on its way
/// from one end of the input's range to the other.
fn last(
    dfa: &DFA,
    cache: &mut Half,
    input: &Input<'_>,
    forward: bool,
    stop: &Stop,
) -> Result<Option<usize>, Ended> {
    let (haystack, range) = (input.haystack(), input.get_range());
    let start = match forward {
        true => dfa.start_state_forward(cache, input),
        false => dfa.start_state_reverse(cache, input),
    };
    let mut state = start.map_err(|_| Ended::TooLong)?;
    let mut found = None;
    for step in 0..range.len() {
        if step % STRIDE == 0 && stop.is_due() {
            return Err(Ended::Stopped);
        }
        let at = match forward {
            true => range.start + step,
            false => range.end - 1 - step,
        };
        state = dfa
            .next_state(cache, state, haystack[at])
            .map_err(|_| Ended::TooLong)?;
        if !state.is_tagged() {
            continue;
        }
        // The automaton reports a match one byte late.
        if state.is_match() {
            found = Some(if forward { at } else { at + 1 });
        } else if state.is_dead() {
            return Ok(found);
        } else if state.is_quit() {
            return found.map(Some).ok_or(Ended::TooLong);
        }
    }
    // The byte after the range decides whether the range ends with a match.
    let beyond = match forward {
        true => haystack.get(range.end),
        false => range.start.checked_sub(1).and_then(|at| haystack.get(at)),
    };
    state = match beyond {
        Some(byte) => dfa.next_state(cache, state, *byte),
        None => dfa.next_eoi_state(cache, state),
    }
    .map_err(|_| Ended::TooLong)?;
    if state.is_match() {
        found = Some(if forward { range.end } else { range.start });
    }
    Ok(found)
}
