-- Neovim 0.11 and newer: put this file into ~/.config/nvim/lsp/, and this line into init.lua:
--
--     vim.lsp.enable("torchmemlint")
return {
  cmd = { "torchmemlint", "server" },
  filetypes = { "python" },
  root_markers = { "torchmemlint.toml", "pyproject.toml", ".git" },
  init_options = {
    settings = {
      -- select = { "TML1", "TML2" },
      -- run = "onSave",
    },
  },
}
