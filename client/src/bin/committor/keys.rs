//! Keypairs that the user names, read or asked for once.

use std::{
    io::{IsTerminal, Read, stdin},
    sync::{Arc, Mutex, PoisonError},
};

use committor_client::{
    SharedSigner,
    config::{ConfigError, KeypairSource},
};

/// Keypairs that have been read: a phrase is typed once, and stdin can be read once.
#[derive(Default)]
pub struct Keys(Mutex<Vec<(KeypairSource, SharedSigner)>>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// The keypair of a source.
    pub fn get(&self, source: &KeypairSource) -> Result<SharedSigner, ConfigError> {
        // What is in there was whole when it was put there.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, keypair)) = known.iter().find(|(known, _)| known == source) {
            return Ok(keypair.clone());
        }
        let keypair = read(source)?;
        known.push((source.clone(), keypair.clone()));
        Ok(keypair)
    }
}

fn read(source: &KeypairSource) -> Result<SharedSigner, ConfigError> {
    Ok(match source {
        KeypairSource::Hardware(_) => source.wallet()?,
        KeypairSource::File(_) => Arc::new(source.read()?),
        KeypairSource::Stdin => {
            let mut text = String::new();
            stdin().lock().read_to_string(&mut text).map_err(|_| source.fail("stdin can't be read"))?;
            Arc::new(source.parse(&text)?)
        }
        KeypairSource::Phrase { .. } => {
            if !stdin().is_terminal() {
                return Err(source.fail("there is no terminal to ask for a seed phrase on"));
            }
            let ask = |question: &str| {
                rpassword::prompt_password(question).map_err(|_| source.fail("the terminal can't be read"))
            };
            let phrase = ask("Seed phrase: ")?;
            let passphrase = ask("Passphrase (empty if it has none): ")?;
            Arc::new(source.derive(&phrase, &passphrase)?)
        }
    })
}
