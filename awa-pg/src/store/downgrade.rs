//! The way back to receipt tables without rings, which does not exist.

use std::convert::Infallible;

use awa_core::error::{StoreError, StoreErrorKind};

use super::{PgStore, only_row, undecodable};

const OPERATION: &str = "downgrade";

impl PgStore {
    /// Refuses to turn the rings back into the unpartitioned receipt tables of before, and says why and what there is
    /// instead. Changes nothing.
    ///
    /// # Errors
    ///
    /// Always: [`Refused`](StoreErrorKind::Refused) with the rows that an older version could not read, or what kept it from
    /// being found out.
    pub async fn downgrade(&self) -> Result<Infallible, StoreError> {
        let sql = self.installed(OPERATION).await?;
        let rows = self.call(OPERATION, sql.statement("install/compact_evidence"), &[]).await?;
        let row = only_row(OPERATION, &rows)?;
        let bad = undecodable(OPERATION);
        let (claims, closures) = (row.i64(0).map_err(&bad)?, row.i64(1).map_err(&bad)?);
        let evidence = if claims + closures == 0 {
            "no claim is stored at the moment, but jobs are, in a form that older versions cannot read".to_owned()
        } else {
            format!(
                "lease_claim_batches holds {claims} rows and lease_claim_closure_batches {closures}, which older versions \
                 cannot read"
            )
        };
        let problem = format!(
            "there is no way back to receipt tables without rings: {evidence}; restore the snapshot that was taken before \
             the upgrade, or go on with this version (docs/upgrade.md)"
        );
        Err(StoreError::new(StoreErrorKind::Refused, OPERATION, problem))
    }
}
