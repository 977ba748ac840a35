--- `:checkhealth touchmark`.

local config = require('touchmark.config')
local errors = require('touchmark.errors')
local link = require('touchmark.link')
local workspace = require('touchmark.workspace')
local uv = vim.uv or vim.loop

local M = {}

--- 0.7's names are others than today's.
local report = vim.health or require('health')
local start = report.start or report.report_start
local ok = report.ok or report.report_ok
local info = report.info or report.report_info
local warn = report.warn or report.report_warn
local fail = report.error or report.report_error

--- A daemon that hangs must not hang the report, in milliseconds.
local PATIENCE = 1000

local function editor()
  start('touchmark: the editor')
  if vim.fn.has('nvim-0.7') == 0 then
    fail('Neovim 0.7 or newer is needed')
  else
    ok('Neovim ' .. tostring(vim.version().major) .. '.' .. tostring(vim.version().minor))
  end
  if not pcall(require, 'bit') then
    fail('this Neovim has no `bit` library: nothing can be hashed')
  end
  if vim.fn.exists('#touchmark') == 0 then
    warn("not set up: call require('touchmark').setup{}")
  end
  if not vim.o.autoread then
    info("'autoread' is off: files that agents change are not loaded again by themselves")
  end
end

local function command()
  start('touchmark: the command')
  local name = link.command()
  if vim.fn.executable(name) == 1 then
    ok(('%s: %s'):format(name, vim.fn.exepath(name)))
  elseif config.options.start == 'never' then
    info(name .. ' is not on the PATH; it is not needed, since start = "never"')
  else
    fail(name .. ' is not on the PATH: install it, or set `command`')
  end
end

local function places()
  start('touchmark: sockets')
  local runtime = workspace.runtime_directory()
  local stat = uv.fs_stat(runtime)
  if not stat then
    return info(runtime .. ' does not exist: no daemon has run yet')
  end
  if stat.uid ~= uv.getuid() then
    fail(runtime .. ' belongs to somebody else')
  else
    ok(runtime)
  end
  if workspace.named_socket() then
    info('TOUCHMARK_SOCKET names ' .. workspace.named_socket())
  end
end

local function daemon(one)
  if one.state == 'refused' then
    return fail(one.root .. ': the daemon speaks another protocol; update touchmark or this plug-in')
  end
  if not one:is_connected() then
    return info(('%s: no daemon at %s (%s)'):format(one.root, one.socket, one.why or 'it ended'))
  end
  local answered
  one:request('status', {}, function(error, status)
    answered = status or { error = error.message }
  end)
  vim.wait(PATIENCE, function()
    return answered ~= nil
  end, 10)
  if not answered then
    return fail(one.root .. ': the daemon does not answer')
  elseif answered.error then
    return fail(('%s: %s'):format(one.root, answered.error))
  end
  ok(('%s: daemon %s, process %d'):format(one.root, answered.version, answered.pid))
  for _, place in ipairs(answered.degraded) do
    warn(('%s: %s'):format(place.path or one.root, place.cause))
  end
end

function M.check()
  editor()
  command()
  places()
  start('touchmark: workspaces')
  local links = link.all()
  if #links == 0 then
    info('no file of a workspace is open')
  end
  for _, one in ipairs(links) do
    daemon(one)
  end
  if #errors.all() > 0 then
    start('touchmark: what went wrong')
    for _, message in ipairs(errors.all()) do
      warn(message)
    end
  end
end

return M
