//! The outbox: messages that are sent only after their facts are stored
//! (DUR-1).

use std::collections::VecDeque;

/// Messages in order, each with the turn whose facts must be stored first.
#[derive(Debug)]
pub(super) struct Outbox<T> {
    waiting: VecDeque<(u64, T)>,
    /// Messages of the turn that is not closed yet.
    fresh: Vec<T>,
    /// The newest turn with facts.
    turn: u64,
    /// The newest turn whose commit is reported, as stored or as failed.
    settled: u64,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            fresh: Vec::new(),
            turn: 0,
            settled: 0,
        }
    }
}

impl<T> Outbox<T> {
    /// Adds a message to the current turn.
    pub(super) fn push(&mut self, item: T) {
        self.fresh.push(item);
    }

    /// Ends the turn. Returns its number if it has facts to be stored.
    /// Otherwise its messages wait only for earlier turns.
    pub(super) fn close_turn(&mut self, has_facts: bool) -> Option<u64> {
        if has_facts {
            self.turn += 1;
        }
        let turn = self.turn;
        self.waiting
            .extend(self.fresh.drain(..).map(|item| (turn, item)));
        has_facts.then_some(turn)
    }

    /// Notes that the commits of a turn, and of all turns before it, are
    /// reported.
    pub(super) fn settle(&mut self, turn: u64) {
        self.settled = self.settled.max(turn);
    }

    /// Removes and returns the next message that may be sent, with its turn.
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        let (turn, _) = self.waiting.front()?;
        if *turn > self.settled {
            return None;
        }
        self.waiting.pop_front()
    }

    /// Returns whether the turn that is not closed has messages.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Returns whether there are no messages.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.fresh.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(outbox: &mut Outbox<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| outbox.pop().map(|(_, item)| item)).collect()
    }

    #[test]
    fn nothing_overtakes_facts_that_are_not_stored() {
        let mut outbox = Outbox::default();
        outbox.push("query");
        assert_eq!(outbox.close_turn(false), None);
        assert_eq!(all(&mut outbox), ["query"]);

        outbox.push("begin");
        assert_eq!(outbox.close_turn(true), Some(1));
        outbox.push("later query");
        assert_eq!(outbox.close_turn(false), None);
        outbox.push("commit");
        assert_eq!(outbox.close_turn(true), Some(2));
        assert!(all(&mut outbox).is_empty());
        assert!(!outbox.is_empty());

        outbox.settle(1);
        assert_eq!(all(&mut outbox), ["begin", "later query"]);
        outbox.settle(2);
        assert_eq!(all(&mut outbox), ["commit"]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn facts_without_answers_hold_up_what_follows_too() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.close_turn(true), Some(1));
        outbox.push("query");
        outbox.close_turn(false);
        assert!(all(&mut outbox).is_empty());
        outbox.settle(1);
        assert_eq!(all(&mut outbox), ["query"]);
    }
}
