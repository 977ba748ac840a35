//! Whether the loop goes on looking for the next question after an answer.
//!
//! To sleep and be woken takes longer than an answer, on both sides. Whoever
//! asks one question after the other is better served by a loop that stays
//! awake for a moment; whoever does not, or shares the processor with it, is
//! not. So the loop tries, and stays awake the more rarely the more often
//! that was in vain. Meanwhile it lets others have the processor, among them
//! whoever asks; where they keep it, it had better sleep: who is woken goes
//! before them.

use std::thread;
use std::time::{Duration, Instant};

/// How long it stays awake.
const MOMENT: Duration = Duration::from_micros(50);

/// After so many failures in a row that it doubles no longer, it is tried
/// after so many answers.
const RARELY: u32 = 31;

/// Who keeps the processor for so long computes, and does not ask.
const KEPT: Duration = Duration::from_millis(1);

/// After that it is tried again after so many answers.
const MORE_RARELY: u32 = 255;

#[derive(Debug, Default)]
pub(super) struct Linger {
    /// Since when it stays awake.
    since: Option<Instant>,
    /// After so many answers it is tried again.
    rest: u32,
    /// The rest after the last failure.
    last_rest: u32,
}

impl Linger {
    /// Somebody was answered.
    pub(super) fn answered(&mut self, now: Instant) {
        if self.rest > 0 {
            self.rest -= 1;
        } else {
            self.since = Some(now);
        }
    }

    /// Whether to stay awake.
    pub(super) fn goes_on(&mut self, now: Instant) -> bool {
        match self.since {
            Some(since) if now.saturating_duration_since(since) < MOMENT => true,
            Some(_) => {
                self.failed();
                false
            }
            None => false,
        }
    }

    /// Lets others have the processor.
    pub(super) fn give_way(&mut self) {
        let before = Instant::now();
        thread::yield_now();
        self.given_way(before.elapsed());
    }

    fn given_way(&mut self, lost: Duration) {
        if lost > KEPT {
            self.since = None;
            self.rest = MORE_RARELY;
        }
    }

    /// Something came. Later than the moment, it came because another process
    /// had the processor, perhaps the one that asks.
    pub(super) fn came(&mut self, now: Instant) {
        if self.goes_on(now) {
            self.since = None;
            self.last_rest = 0;
        }
    }

    fn failed(&mut self) {
        self.since = None;
        self.last_rest = (self.last_rest * 2 + 1).min(RARELY);
        self.rest = self.last_rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each answer whether the loop stayed awake.
    fn stayed(linger: &mut Linger, now: &mut Instant, pauses: &[Duration]) -> Vec<bool> {
        let mut stayed = Vec::new();
        for pause in pauses {
            linger.answered(*now);
            stayed.push(linger.goes_on(*now));
            *now += *pause;
            linger.came(*now);
        }
        stayed
    }

    #[test]
    fn it_stays_awake_for_who_asks_at_once_and_ever_more_rarely_for_others() {
        let (mut linger, mut now) = (Linger::default(), Instant::now());
        let (quick, slow) = (MOMENT / 10, MOMENT * 10);
        assert_eq!(stayed(&mut linger, &mut now, &[quick; 5]), [true; 5]);
        let slowly = stayed(&mut linger, &mut now, &[slow; 10_000]);
        let tried: Vec<usize> = (0..slowly.len()).filter(|&n| slowly[n]).collect();
        assert_eq!(tried[..5], [0, 2, 6, 14, 30]);
        assert!(tried.len() < 320, "{}", tried.len());
        let quickly = stayed(&mut linger, &mut now, &[quick; 1_000]);
        assert!(
            quickly[32..].iter().all(|&stayed| stayed),
            "it is found out"
        );
    }
    #[test]
    fn it_sleeps_beside_who_computes() {
        let (mut linger, mut now) = (Linger::default(), Instant::now());
        linger.answered(now);
        linger.given_way(KEPT / 2);
        assert!(linger.goes_on(now), "others ask too");
        linger.given_way(KEPT * 2);
        let stayed = stayed(&mut linger, &mut now, &[MOMENT / 10; 1_100]);
        let tried = stayed.iter().position(|stayed| *stayed);
        assert_eq!(tried, Some(MORE_RARELY as usize));
    }
}
