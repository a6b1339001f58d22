//! Whose a store is: one cluster, and one authority on it.

use solana_address::Address;
use solana_hash::Hash;

use super::{
    Store, StoreError,
    sql::{Durability, Sql, params},
};

/// The cluster and the authority that all bundles of a store are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster, by the hash of its genesis.
    pub cluster: Hash,
    /// The authority that the accounts are delegated to.
    pub authority: Address,
}

impl Store {
    /// Records whose the store is when it is used first, and compares from then on: what is in it was made for that cluster
    /// and that authority, and must not be worked on with others.
    ///
    /// # Errors
    /// [`StoreError::OtherCluster`] and [`StoreError::OtherAuthority`] if it is another's; [`StoreError`] if it could not be
    /// written.
    pub async fn identify(&self, identity: Identity) -> Result<(), StoreError> {
        let store = self.name.clone();
        let work = move |sql: &dyn Sql| identify(sql, &identity, &store);
        self.writer.run("record whose it is", Durability::Power, work).await
    }

    /// Whose the store is; `None` as long as no engine has used it.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be read.
    pub async fn identity(&self) -> Result<Option<Identity>, StoreError> {
        self.readers.run("read whose it is", recorded).await
    }
}

fn recorded(sql: &dyn Sql) -> Result<Option<Identity>, StoreError> {
    let row = sql.first("SELECT genesis_hash, authority FROM identity", &[])?;
    // A hash has the bytes of an address.
    let identity = |row: super::sql::Row| {
        Ok(Identity { cluster: row.address(0)?.to_bytes().into(), authority: row.address(1)? })
    };
    row.map(identity).transpose()
}

fn identify(sql: &dyn Sql, identity: &Identity, store: &str) -> Result<(), StoreError> {
    let Identity { cluster, authority } = identity;
    let Some(known) = recorded(sql)? else {
        sql.execute(
            "INSERT INTO identity (id, genesis_hash, authority) VALUES (1, ?1, ?2)",
            params![cluster.as_ref(), authority],
        )?;
        return Ok(());
    };
    let store = store.to_owned();
    if known.cluster != *cluster {
        return Err(StoreError::OtherCluster { store, recorded: known.cluster, given: *cluster });
    }
    if known.authority != *authority {
        return Err(StoreError::OtherAuthority { store, recorded: known.authority, given: *authority });
    }
    Ok(())
}
