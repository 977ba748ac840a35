--- The link to one workspace's daemon: made, lost, made again, without a word.

local config = require('touchmark.config')
local connection = require('touchmark.connection')
local errors = require('touchmark.errors')
local workspace = require('touchmark.workspace')
local uv = vim.uv or vim.loop

local M = {}

--- Pauses between attempts, in milliseconds. An attempt without a daemon is
--- one failed `connect`.
local FIRST_PAUSE, LONGEST_PAUSE = 100, 30000
--- What the daemon's protocol has to be.
local PROTOCOL = 2

--- By the workspace's root.
local links = {}
local listeners = { event = {}, connected = {}, lost = {} }

--- Has `listener` called: `event(link, event)`, `connected(link)`, `lost(link)`.
function M.on(what, listener)
  table.insert(listeners[what], listener)
end

local function call(what, ...)
  for _, listener in ipairs(listeners[what]) do
    listener(...)
  end
end

--- All links, in no order.
function M.all()
  return vim.tbl_values(links)
end

local Link = {}
Link.__index = Link

--- Whether requests are answered.
function Link:is_connected()
  return self.state == 'connected'
end

--- Asks the daemon; where there is none the answer is an error.
---@param answer fun(error: table?, result: table?)?
function Link:request(method, params, answer)
  answer = answer or function() end
  if not self.connection then
    return answer({ message = 'no daemon runs' })
  end
  self.connection.request(method, params, answer)
end

--- Whether the options have a daemon started here.
function Link:may_start()
  local start = config.options.start
  return start == 'always' or (start == 'when git' and uv.fs_lstat(self.root .. '/.git') ~= nil)
end

local function command()
  local named = uv.os_getenv('TOUCHMARK_BIN')
  return config.options.command or (named ~= '' and named) or 'touchmark'
end
M.command = command

--- Starts a daemon, once in a while at most.
function Link:start_daemon()
  if self.starting or (self.started_at and uv.now() - self.started_at < 60000) then
    return
  end
  self.starting, self.started_at = true, uv.now()
  local stderr = uv.new_pipe(false)
  local said = ''
  local process
  local function failed(why)
    errors.once('start', ('no daemon could be started: %s'):format(why))
  end
  local spawn_error
  process, spawn_error = uv.spawn(command(), {
    args = { '--workspace', self.root, 'start' },
    stdio = { nil, nil, stderr },
  }, function(code)
    self.starting = false
    process:close()
    stderr:close()
    vim.schedule(function()
      if code ~= 0 then
        return failed(vim.trim(said))
      end
      self.pause = FIRST_PAUSE
      self:connect()
    end)
  end)
  if not process then
    self.starting = false
    stderr:close()
    return failed(command() .. ': ' .. tostring(spawn_error))
  end
  stderr:read_start(function(_, chunk)
    said = said .. (chunk or '')
  end)
end

--- Tries again after a pause; the next one is longer.
function Link:retry()
  if self.state ~= 'apart' or self.timer:is_active() then
    return
  end
  self.timer:start(self.pause, 0, vim.schedule_wrap(function()
    self:connect()
  end))
  self.pause = math.min(self.pause * 2, LONGEST_PAUSE)
end

function Link:greet()
  local version = vim.version()
  local hello = {
    client = { name = 'neovim', version = ('%d.%d.%d'):format(version.major, version.minor, version.patch) },
    protocol = PROTOCOL,
    role = 'editor',
  }
  self:request('initialize', hello, function(refused, welcome)
    if refused then
      -- It stays as it is until the editor or the daemon is another one.
      self.state = 'refused'
      errors.once('initialize', ('the daemon refused: %s'):format(refused.message))
      return self.connection and self.connection.close()
    end
    if welcome.workspace ~= self.root then
      -- TOUCHMARK_SOCKET is the same for every directory (SEC-8).
      self.state = 'refused'
      errors.once('served', ('%s: its daemon serves %s, not %s'):format(self.socket, welcome.workspace, self.root))
      return self.connection and self.connection.close()
    end
    self.server = welcome.server
    self:request('subscribe', {}, function(error, subscribed)
      if error then
        return
      end
      self.subscription = subscribed.subscription
      self.state, self.pause = 'connected', FIRST_PAUSE
      call('connected', self)
    end)
  end)
end

--- Takes a connection that was made.
function Link:adopt(made)
  self.connection = made
  self.state = 'greeting'
  self:greet()
end

function Link:handlers()
  return {
    on_event = function(event)
      call('event', self, event)
    end,
    on_close = function()
      local was = self.state
      self.connection = nil
      if was == 'connected' or was == 'greeting' then
        self.state = 'apart'
        call('lost', self)
        self:retry()
      end
    end,
  }
end

--- Connects, if it is time to.
function Link:connect()
  if self.state ~= 'apart' or M.ended then
    return
  end
  self.timer:stop()
  self.state = 'connecting'
  -- The next daemon may have been started with another runtime directory.
  self.socket = workspace.socket(self.root)
  connection.open(self.socket, self:handlers(), function(error, made)
    if made then
      return self:adopt(made)
    end
    self.state = 'apart'
    self.why = error
    if self:may_start() then
      self:start_daemon()
    end
    self:retry()
  end)
end

local function new(root, socket)
  local link = setmetatable({
    root = root,
    socket = socket,
    state = 'apart',
    pause = FIRST_PAUSE,
    timer = uv.new_timer(),
  }, Link)
  links[root] = link
  return link
end

--- The link of the first candidate that is a workspace, or nil: see
--- `workspace.candidates`. Calls back once that is known.
---@param candidates table[]
---@param callback fun(link: table?)
function M.first(candidates, callback)
  local function try(i)
    local candidate = candidates[i]
    if not candidate or M.ended then
      return callback(nil)
    end
    local known = links[candidate.root]
    if known then
      known:connect()
      return callback(known)
    end
    if candidate.marked then
      local link = new(candidate.root, candidate.socket)
      link:connect()
      return callback(link)
    end
    -- Only a daemon that answers makes this directory a workspace.
    local link
    connection.open(candidate.socket, {
      on_event = function(event)
        if link then
          call('event', link, event)
        end
      end,
      on_close = function()
        if link then
          link:handlers().on_close()
        end
      end,
    }, function(error, made)
      if error then
        return try(i + 1)
      end
      if links[candidate.root] then
        made.close()
        return callback(links[candidate.root])
      end
      link = new(candidate.root, candidate.socket)
      link:adopt(made)
      callback(link)
    end)
  end
  try(1)
end

--- Tries every link that is apart at once: the user has come back.
function M.wake()
  for _, link in pairs(links) do
    link.pause = FIRST_PAUSE
    link:connect()
  end
end

--- Ends all links, for good.
function M.close()
  M.ended = true
  for _, link in pairs(links) do
    link.timer:stop()
    link.state = 'closed'
    if link.connection then
      link.connection.close()
    end
  end
end

return M
