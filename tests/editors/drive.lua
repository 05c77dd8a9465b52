-- Drive Neovim as a user does, and write what it shows into the file that RESULT names: a file is open; its diagnostics
-- are read, a rule's page is asked for by hovering, the quick fix is chosen from the menu, all safe fixes are applied.
local result = { version = tostring(vim.version().major) .. "." .. vim.version().minor }

local function finish(problem)
  result.problem = problem
  local file = assert(io.open(vim.env.RESULT, "w"))
  file:write(vim.fn.json_encode(result))
  file:close()
  vim.cmd("qall!")
end

local function diagnostics()
  local found = {}
  for _, one in ipairs(vim.diagnostic.get(0)) do
    table.insert(found, {
      code = one.code,
      line = one.lnum + 1,
      column = one.col,
      severity = one.severity,
      source = one.source,
      message = one.message,
    })
  end
  return found
end

local function of_rule(code)
  return vim.tbl_filter(function(one)
    return one.code == code
  end, diagnostics())
end

local function await(what, met)
  if not vim.wait(30000, met, 20) then
    error("waited in vain for " .. what)
  end
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
end

local function choose(wanted, only)
  -- The menu of code actions: take the title that begins with what is wanted.
  local titles = {}
  vim.ui.select = function(items, options, on_choice)
    local chosen
    for _, item in ipairs(items) do
      local title = options.format_item(item)
      table.insert(titles, title)
      if not chosen and vim.startswith(title, wanted) then
        chosen = item
      end
    end
    on_choice(chosen, chosen and 1)
  end
  local before = text()
  vim.lsp.buf.code_action({ context = { only = only } })
  await("the action " .. wanted, function()
    return text() ~= before
  end)
  return titles
end

local function run()
  await("diagnostics", function()
    return #of_rule("TML101") > 0 and #of_rule("TML201") > 0
  end)
  result.diagnostics = diagnostics()

  local found = of_rule("TML101")[1]
  vim.api.nvim_win_set_cursor(0, { found.line, found.column })
  local position = vim.lsp.util.make_position_params(0, "utf-16")
  for _, answer in pairs(vim.lsp.buf_request_sync(0, "textDocument/hover", position, 10000) or {}) do
    result.hover = answer.result and answer.result.contents.value
  end

  result.titles = choose("Fix TML101", { "quickfix" })
  result.fixed = text()
  await("the finding to go", function()
    return #of_rule("TML101") == 0
  end)
  result.after = diagnostics()

  choose("Fix all", { "source.fixAll.torchmemlint" })
  result.fixed_all = text()
  await("the safe findings to go", function()
    return #of_rule("TML201") == 0
  end)
  result.left = diagnostics()

  -- A half-typed line is no end: what was found stays, and comes back right.
  vim.cmd("undo")
  await("the finding to come back", function()
    return #of_rule("TML201") == 1
  end)
end

local ok, problem = pcall(run)
finish(not ok and tostring(problem) or nil)
