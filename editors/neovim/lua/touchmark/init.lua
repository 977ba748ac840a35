--- touchmark in Neovim: `require('touchmark').setup{}`. See `:help touchmark`.

local M = {}

local started = false

--- Begins to listen and to tell. Done by `setup`.
function M.start()
  if started then
    return
  end
  started = true
  local blame = require('touchmark.blame')
  local buffers = require('touchmark.buffers')
  local errors = require('touchmark.errors')
  local feed = require('touchmark.feed')
  local files = require('touchmark.files')
  local link = require('touchmark.link')
  local reload = require('touchmark.reload')
  local queue = require('touchmark.queue')

  link.on('connected', buffers.connected)
  link.on('lost', buffers.lost)
  link.on('event', function(owner, event)
    feed.event(owner, event)
    if event.type == 'version' then
      queue.changed(owner)
    end
    files.event(owner, event, function(path, file)
      if event.type == 'version' then
        blame.moved()
        reload.version(owner, path, event.version)
      end
      for buffer, state in pairs(buffers.of(owner, path)) do
        buffers.known(buffer, state, file)
      end
    end)
  end)

  vim.api.nvim_set_hl(0, 'TouchmarkAgent', { default = true, link = 'DiagnosticSignInfo' })
  vim.api.nvim_set_hl(0, 'TouchmarkReview', { default = true, link = 'DiagnosticSignWarn' })
  vim.api.nvim_set_hl(0, 'TouchmarkBlame', { default = true, link = 'Comment' })
  local group = vim.api.nvim_create_augroup('touchmark', {})
  local function on(events, callback)
    local what = type(events) == 'table' and events[1] or events
    local guarded = errors.guarded(what, callback)
    vim.api.nvim_create_autocmd(events, {
      group = group,
      callback = function(args)
        guarded(args) -- What it returns must not remove the autocommand.
      end,
    })
  end
  on({ 'BufReadPost', 'BufNewFile', 'BufFilePost' }, function(args)
    buffers.opened(args.buf)
  end)
  on('BufEnter', function(args)
    buffers.entered(args.buf)
    reload.flush()
  end)
  on({ 'CursorMoved', 'InsertLeave' }, blame.moved)
  on('BufModifiedSet', function(args)
    buffers.tell_dirty(args.buf)
  end)
  on('BufWritePre', function(args)
    buffers.before_write(args.buf, vim.fn.fnamemodify(args.match, ':p'))
  end)
  on({ 'BufWritePost', 'FileWritePost', 'FileAppendPost' }, function(args)
    buffers.after_write(args.buf, vim.fn.fnamemodify(args.match, ':p'))
  end)
  on({ 'BufUnload', 'BufDelete', 'BufWipeout' }, function(args)
    buffers.unloaded(args.buf)
  end)
  on('FileChangedShell', function(args)
    reload.changed_shell(args.buf)
  end)
  on({ 'CmdlineLeave', 'CmdwinLeave', 'CursorHold' }, function()
    vim.schedule(reload.flush)
  end)
  on('FocusGained', function()
    link.wake()
    buffers.entered(vim.api.nvim_get_current_buf())
    reload.flush()
  end)
  on('VimLeavePre', link.close)

  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      buffers.opened(buffer)
    end
  end
end

--- Sets options and begins. May be called again with other options.
---@param options table? see `:help touchmark-options`
function M.setup(options)
  for _, wrong in ipairs(require('touchmark.config').apply(options)) do
    require('touchmark.errors').once('option ' .. wrong, 'setup: ' .. wrong)
  end
  M.start()
  local blame = require('touchmark.blame')
  if blame.enabled ~= require('touchmark.config').options.blame then
    blame.toggle()
  end
end

--- What is known of a buffer's file: `{connected, path, author, session, time,
--- stale}`, `session` and `stale` being the labels of the sessions that wrote
--- it and that hold an old copy; or nil where no
--- workspace's daemon knows it.
---@param buffer integer? the current one
function M.file(buffer)
  local state = require('touchmark.buffers').get(buffer or 0)
  if not state or not state.link then
    return nil
  end
  local path = require('touchmark.buffers').path(state)
  local file = path and require('touchmark.files').known(state.link, path)
  if not file or not state.link:is_connected() then
    return nil
  end
  local stale = vim.tbl_keys(file.stale)
  table.sort(stale)
  local latest = file.version
  return {
    connected = true,
    path = path,
    author = latest and latest.author.kind,
    session = latest and require('touchmark.names').session(latest.author),
    time = latest and latest.time,
    stale = stale,
  }
end

--- For a status line: who changed the file last, and whose copy is out of
--- date. Empty where there is nothing to say.
---@param buffer integer?
---@return string
function M.statusline(buffer)
  local file = M.file(buffer)
  if not file then
    return ''
  end
  local names = require('touchmark.names')
  local parts = {}
  if file.author then
    parts[1] = names.author({ kind = file.author, session = file.session })
  end
  if #file.stale == 1 then
    parts[#parts + 1] = 'stale for ' .. names.show(file.stale[1], 24)
  elseif #file.stale > 1 then
    parts[#parts + 1] = ('stale for %d agents'):format(#file.stale)
  end
  return table.concat(parts, ' · ')
end

return M
