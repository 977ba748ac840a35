--- Who is taken at their word: whose files mark a workspace (SEC-6), and which
--- sockets are dialled (SEC-8). The cases are in bindings/conformance/trust.

local uv = vim.uv or vim.loop

local M = {}

--- The longest list of trusted directories that is read, in bytes.
local MOST_LIST = 1024 * 1024

--- Whether a mode has a bit, of a power of two.
local function has(mode, bit)
  return math.floor(mode / bit) % 2 == 1
end
local OTHERS_WRITE, GROUP_WRITES = 2, 16
--- Who may write in the directory may remove only what is theirs.
local STICKY = 512

--- Whose process this is: `uid`, and `sudo`, whom root works for if
--- `SUDO_UID` says so.
function M.me()
  return { uid = uv.getuid(), sudo = tonumber((uv.os_getenv('SUDO_UID') or ''):match('^%d+$')) }
end

--- Whether a file in a directory is taken over: both belong to who is trusted,
--- and not everybody may put another in its place.
function M.takes(me, directory, file)
  local function trusts(uid)
    return uid == me.uid or uid == 0 or (me.uid == 0 and uid == me.sudo)
  end
  local open = has(directory.mode, OTHERS_WRITE) and not has(directory.mode, STICKY)
  return trusts(file.uid) and trusts(directory.uid) and not open
end

--- Whether a process of `peer` may answer as this user's daemon.
function M.hears(me, peer)
  return peer == me.uid or peer == 0
end

--- The same by the socket, since the editor does not tell a peer's user:
--- nobody else can have put it into its directory. Why not, or nil.
function M.refusal(me, directory, socket)
  if not M.hears(me, socket.uid) then
    return ('it belongs to user %d, not to %d'):format(socket.uid, me.uid)
  end
  if not M.hears(me, directory.uid) then
    return ('its directory belongs to user %d'):format(directory.uid)
  end
  local open = has(directory.mode, GROUP_WRITES) or has(directory.mode, OTHERS_WRITE)
  if open and not has(directory.mode, STICKY) then
    return 'others may write in its directory: make its mode 0700'
  end
end

--- Why a socket is not dialled, or nil.
---@param socket string
function M.against(socket)
  local found = uv.fs_lstat(socket)
  local directory = found and uv.fs_lstat(socket:match('^(.+)/[^/]*$') or '/')
  if not found or not directory then
    return nil
  end
  local why = M.refusal(M.me(), directory, found)
  return why and ('%s: %s'):format(socket, why)
end

--- Whether a list names a directory: a line is its canonical path, that of one
--- above it and `/*`, or `*` for all.
function M.is_listed(list, directory)
  for line in (list .. '\n'):gmatch('([^\n]*)\n') do
    line = line:match('^[ \t\r\f]*(.-)[ \t\r\f]*$')
    if line == '*' or (line:sub(1, 1) == '/' and line == directory) then
      return true
    end
    local below = line:match('^(/.*)%*$') or (line == '/*' and '/')
    if below and below:sub(-1) == '/' and directory:sub(1, #below) == below and #directory > #below then
      return true
    end
  end
  return false
end

--- Whether a mark is there and taken over, in a directory that is named
--- without links.
---@param directory string
---@param name string
function M.marks(directory, name)
  local file, around = uv.fs_lstat(directory .. '/' .. name), uv.fs_lstat(directory)
  if not file or not around then
    return false
  end
  if M.takes(M.me(), around, file) then
    return true
  end
  local config = uv.os_getenv('XDG_CONFIG_HOME')
  config = config and config:sub(1, 1) == '/' and config or (uv.os_homedir() or '') .. '/.config'
  local list = io.open(config .. '/touchmark/trusted', 'rb')
  if not list then
    return false
  end
  local listed = M.is_listed(list:read(MOST_LIST) or '', directory)
  list:close()
  return listed
end

return M
