--- Which workspace a file belongs to, and where its daemon listens: the rules
--- of the command's, so that `touchmark` need not be on the PATH.

local sha256 = require('touchmark.sha256')
local trust = require('touchmark.trust')
local uv = vim.uv or vim.loop

local M = {}

--- An absolute path out of the environment; others do not count (XDG).
local function directory(variable)
  local value = uv.os_getenv(variable)
  return value and value:sub(1, 1) == '/' and value or nil
end

--- Where the sockets of this user's daemons are.
function M.runtime_directory()
  local runtime = directory('XDG_RUNTIME_DIR')
  if runtime then
    return runtime .. '/touchmark'
  end
  local cache = directory('XDG_CACHE_HOME') or (uv.os_homedir() or '') .. '/.cache'
  return cache .. '/touchmark/run'
end

--- The name of a workspace in its socket's.
---@param root string canonical
function M.key(root)
  return sha256.of(root):sub(1, 16)
end

--- The socket that `TOUCHMARK_SOCKET` names outright, if it does.
function M.named_socket()
  local named = uv.os_getenv('TOUCHMARK_SOCKET')
  return named ~= '' and named or nil
end

local function exists(path, kind)
  local stat = uv.fs_lstat(path)
  return stat ~= nil and (kind == nil or stat.type == kind)
end

--- The socket that the lock of a workspace's daemon names, if it is there and
--- this user's. One that was started with another runtime directory listens
--- elsewhere than one of this environment would.
local function held_socket(key)
  local state = directory('XDG_STATE_HOME') or (uv.os_homedir() or '') .. '/.local/state'
  local lock = ('%s/touchmark/%s.lock'):format(state, key)
  local function own(path, kind)
    local stat = uv.fs_lstat(path)
    return stat ~= nil and stat.type == kind and stat.uid == uv.getuid()
  end
  local file = own(lock, 'file') and io.open(lock, 'rb')
  if not file then
    return nil
  end
  -- The daemon's number, its socket and the workspace, each with a line feed.
  local pid, socket = (file:read('*a') or ''):match('^(%d+)\n(/[^\n]*)\n/.*\n$')
  file:close()
  -- A daemon that was killed leaves its lock and its socket behind.
  return pid and uv.kill(tonumber(pid), 0) == 0 and own(socket, 'socket') and socket or nil
end

--- The socket of a workspace's daemon, whether or not one runs: of one that
--- runs, wherever it was started, or of one of this environment.
---@param root string canonical
function M.socket(root)
  local named = M.named_socket()
  if named then
    return named
  end
  local key = M.key(root)
  local own = ('%s/%s.sock'):format(M.runtime_directory(), key)
  return held_socket(key) or own
end

local function parent(path)
  local up = path:match('^(.*)/[^/]+$')
  return up == '' and '/' or up
end

--- The directories that may be the workspace of a file in `directory`, the
--- innermost first: `{root, socket, marked}`. A marked one (`.git`,
--- `.touchmark.toml`) is it, whether or not a daemon runs there; another one
--- is if a daemon answers at its socket. Marks that others could have put there
--- count as none (SEC-6). What is further out than a marked one
--- is left out.
---@param below string
function M.candidates(below)
  local found = {}
  local at = uv.fs_realpath(below)
  local named = M.named_socket()
  while at do
    local marked = trust.marks(at, '.touchmark.toml') or trust.marks(at, '.git')
    local socket = M.socket(at)
    -- The socket named outright is the same for every directory: it marks none,
    -- but where a daemon's lock says that it is this one's.
    local runs = named and held_socket(M.key(at)) or (not named and exists(socket, 'socket'))
    if marked or runs then
      found[#found + 1] = { root = at, socket = socket, marked = marked }
    end
    if marked then
      break
    end
    at = at ~= '/' and parent(at) or nil
  end
  if named and #found == 0 then
    found[1] = { root = uv.fs_realpath(below) or below, socket = named, marked = true }
  end
  return found
end

--- The directory of a file, as far as it exists.
function M.directory_of(file)
  local at = parent(file)
  while at and at ~= '/' and not exists(at) do
    at = parent(at)
  end
  return at
end

local function below(root, file)
  local prefix = root == '/' and '/' or root .. '/'
  return file:sub(1, #prefix) == prefix and file:sub(#prefix + 1) or nil
end

--- A file's path relative to the workspace; nil outside of it. The name as it
--- is spelled counts, links and all: that is the one agents use.
---@param root string canonical
---@param file string absolute
function M.relative(root, file)
  local direct = below(root, file)
  if direct then
    return direct
  end
  local real = uv.fs_realpath(M.directory_of(file) or '/')
  local missing = file:sub(#(M.directory_of(file) or '') + 1)
  return real and below(root, (real .. missing):gsub('^//', '/'))
end

return M
