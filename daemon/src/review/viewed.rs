//! `review/view`: which changes the user has marked as viewed (REV-4).

use touchmark_proto::Error;
use touchmark_proto::review::{ReviewView, ReviewViewed};

use crate::undo::Undoer;

impl Undoer {
    /// Handles `review/view`.
    ///
    /// # Errors
    /// `notFound` if a change is no longer as it was listed: no mark is changed
    /// then. `storage`.
    pub(crate) async fn review_view(&self, ask: &ReviewView) -> Result<ReviewViewed, Error> {
        let _one = self.journal.alone().await;
        let mut changed = 0;
        for (queued, ids) in self.named(&ask.hunks).await? {
            self.kept.retain_viewed(&queued.path, queued.ids());
            for id in &ids {
                let is_news = self.kept.set_viewed(&queued.path, id, ask.viewed);
                changed += u32::from(is_news);
            }
        }
        self.kept.write()?;
        Ok(ReviewViewed { changed })
    }
}
