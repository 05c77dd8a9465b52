//! Tells Zed how to run `torchmemlint server`, and hands it the settings under `lsp.torchmemlint`.

use zed_extension_api::{self as zed, serde_json, settings::LspSettings};

struct Torchmemlint;

impl zed::Extension for Torchmemlint {
    fn new() -> Self {
        Torchmemlint
    }

    fn language_server_command(
        &mut self,
        id: &zed::LanguageServerId,
        worktree: &zed::Worktree,
    ) -> zed::Result<zed::Command> {
        let binary = LspSettings::for_worktree(id.as_ref(), worktree)
            .ok()
            .and_then(|settings| settings.binary);
        let (path, arguments) = match binary {
            Some(binary) => (binary.path, binary.arguments),
            None => (None, None),
        };
        let command = path
            .or_else(|| worktree.which("torchmemlint"))
            .ok_or("torchmemlint is not on the PATH: pip install 'torchmemlint[lsp]'")?;
        Ok(zed::Command {
            command,
            args: arguments.unwrap_or_else(|| vec!["server".to_string()]),
            env: worktree.shell_env(),
        })
    }

    fn language_server_initialization_options(
        &mut self,
        id: &zed::LanguageServerId,
        worktree: &zed::Worktree,
    ) -> zed::Result<Option<serde_json::Value>> {
        Ok(LspSettings::for_worktree(id.as_ref(), worktree)
            .ok()
            .and_then(|settings| settings.initialization_options))
    }
}

zed::register_extension!(Torchmemlint);
