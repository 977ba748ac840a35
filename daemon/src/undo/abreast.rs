//! Some futures at a time.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Completes all futures, at most `most` of them at the same time. Returns their
/// outputs in the order of the futures.
pub(super) async fn abreast<F: Future>(most: usize, futures: Vec<F>) -> Vec<F::Output> {
    let mut left = futures.into_iter();
    let mut begun: Vec<(usize, Pin<Box<F>>)> = Vec::new();
    let mut outputs: Vec<Option<F::Output>> = Vec::new();
    poll_fn(|context| {
        loop {
            for future in left.by_ref().take(most - begun.len()) {
                begun.push((outputs.len(), Box::pin(future)));
                outputs.push(None);
            }
            let before = begun.len();
            begun.retain_mut(|(at, future)| match future.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(output) => {
                    outputs[*at] = Some(output);
                    false
                }
            });
            match (begun.len(), before) {
                (_, 0) => return Poll::Ready(()),
                (now, before) if now == before => return Poll::Pending,
                _ => {}
            }
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[tokio::test]
    async fn outputs_are_in_order_and_few_futures_run_at_a_time() {
        let (running, highest) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let futures = (0..20).map(|n| {
            let (running, highest) = (Rc::clone(&running), Rc::clone(&highest));
            async move {
                running.set(running.get() + 1);
                highest.set(highest.get().max(running.get()));
                // Those that began later may end earlier.
                for _ in 0..20 - n {
                    tokio::task::yield_now().await;
                }
                running.set(running.get() - 1);
                n
            }
        });
        let outputs = abreast(3, futures.collect()).await;
        assert_eq!(outputs, (0..20).collect::<Vec<_>>());
        assert_eq!(highest.get(), 3);
        assert!(
            abreast(3, Vec::<std::future::Ready<()>>::new())
                .await
                .is_empty()
        );
    }
}
