//! Threads that do one kind of work apart from the loop. They are started when
//! there is work and end when there is none. Work that hangs blocks only its
//! own lane.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A queue and the threads that work on it.
#[derive(Debug)]
pub(super) struct Lane<T>(Arc<Mutex<Queue<T>>>);

#[derive(Debug)]
struct Queue<T> {
    work: VecDeque<T>,
    threads: usize,
    most: usize,
}

impl<T> Clone for Lane<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Lane<T> {
    /// Creates a lane with at most `most` threads.
    pub(super) fn of(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue {
            work: VecDeque::new(),
            threads: 0,
            most,
        })))
    }

    /// Queues `work`, to be done by `how` on one of the lane's threads. If no
    /// thread can be started, it is done together with the next work that
    /// arrives.
    pub(super) fn push(&self, work: T, how: impl Fn(T) + Send + 'static) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.work.push_back(work);
        if queue.threads == queue.most {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let lane = self.clone();
        let thread = thread::Builder::new().name("read".into());
        let spawned = thread.spawn(move || {
            while let Some(work) = lane.next() {
                how(work);
            }
        });
        if spawned.is_err() {
            let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            queue.threads -= 1;
        }
    }

    fn next(&self) -> Option<T> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = queue.work.pop_front();
        queue.threads -= usize::from(next.is_none());
        next
    }
}
