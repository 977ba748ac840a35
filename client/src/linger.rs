//! Whether to look for an answer for a moment before sleeping.
//!
//! To sleep and be woken takes longer than most answers, on both sides. Where
//! an answer takes longer, or both sides share a processor, the moment is
//! lost: it is then tried ever more rarely.

use std::time::Duration;

/// How long an answer is looked for.
pub(crate) const MOMENT: Duration = Duration::from_micros(50);

/// However often that was in vain, it is tried again after so many answers.
const RARELY: u32 = 31;

#[derive(Debug, Default)]
pub(crate) struct Linger {
    /// So many answers are waited for asleep.
    rest: u32,
    /// The rest after the last failure.
    last_rest: u32,
}

impl Linger {
    /// Whether to look for this answer.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.rest == 0;
        self.rest = self.rest.saturating_sub(1);
        due
    }

    /// It was looked for, and came in time or did not.
    pub(crate) fn ended(&mut self, in_time: bool) {
        self.last_rest = if in_time {
            0
        } else {
            (self.last_rest * 2 + 1).min(RARELY)
        };
        self.rest = self.last_rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_looked_for_ever_more_rarely_while_that_is_in_vain() {
        let mut linger = Linger::default();
        let tried = |linger: &mut Linger, in_time| {
            let due = linger.is_due();
            if due {
                linger.ended(in_time);
            }
            due
        };
        assert!((0..10).all(|_| tried(&mut linger, true)));
        let vain: Vec<usize> = (0..200).filter(|_| tried(&mut linger, false)).collect();
        assert_eq!(vain[..6], [0, 2, 6, 14, 30, 62]);
        assert!((0..=RARELY).any(|_| tried(&mut linger, true)));
        assert!((0..10).all(|_| tried(&mut linger, true)), "it pays again");
    }
}
