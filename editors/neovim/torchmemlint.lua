-- Neovim 0.7 to 0.10: put this file into ~/.config/nvim/plugin/. Newer ones have a shorter way, `lsp/torchmemlint.lua`.
local markers = { "torchmemlint.toml", "pyproject.toml", ".git" }
local clients = {} -- by root

local function root_of(file)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  local above = folder
  while true do
    for _, marker in ipairs(markers) do
      if vim.loop.fs_stat(above .. "/" .. marker) then
        return above
      end
    end
    local parent = vim.fn.fnamemodify(above, ":h")
    if parent == above then
      return folder
    end
    above = parent
  end
end

local function client_for(root)
  clients[root] = clients[root]
    or vim.lsp.start_client({
      name = "torchmemlint",
      cmd = { "torchmemlint", "server" },
      root_dir = root,
      init_options = {
        settings = {
          -- select = { "TML1", "TML2" },
          -- run = "onSave",
        },
      },
      on_exit = function()
        clients[root] = nil
      end,
    })
  return clients[root]
end

vim.api.nvim_create_autocmd("FileType", {
  pattern = "python",
  callback = function(event)
    local id = client_for(root_of(event.file))
    if id then
      vim.lsp.buf_attach_client(event.buf, id)
    end
  end,
})
