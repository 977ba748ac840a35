--- What a file holds on disk, read aside: the editor goes on meanwhile.

local sha256 = require('touchmark.sha256')
local uv = vim.uv or vim.loop

local M = {}

--- Hashing this much takes a millisecond or two, between two turns of the
--- editor's loop.
local PIECE = 64 * 1024

--- Whether two stats are of one state of one file. Used to tell that somebody
--- wrote meanwhile, never that nobody did anything else.
function M.same(a, b)
  return a ~= nil
    and b ~= nil
    and a.ino == b.ino
    and a.size == b.size
    and a.mtime.sec == b.mtime.sec
    and a.mtime.nsec == b.mtime.nsec
end

--- Reads and hashes a file. `expected` is the stat it must have all the while,
--- if given. Calls back on the main loop with an error, or with nil and
--- `{hash, stat}`; the error `changed` says that somebody wrote meanwhile.
---@param path string
---@param expected table?
---@param callback fun(error: string?, found: table?)
function M.hash(path, expected, callback)
  local answer = vim.schedule_wrap(callback)
  uv.fs_open(path, 'r', 0, function(open_error, file)
    if not file then
      return answer(open_error)
    end
    local function finish(error, found)
      uv.fs_close(file, function()
        answer(error, found)
      end)
    end
    uv.fs_fstat(file, function(stat_error, before)
      if not before then
        return finish(stat_error)
      end
      if before.type ~= 'file' then
        return finish('not a file')
      end
      if expected and not M.same(expected, before) then
        return finish('changed')
      end
      local hash, at = sha256.new(), 0
      local function read()
        uv.fs_read(file, PIECE, at, function(read_error, bytes)
          if not bytes then
            return finish(read_error)
          end
          if #bytes > 0 then
            hash.update(bytes)
            at = at + #bytes
            return read()
          end
          uv.fs_fstat(file, function(end_error, after)
            if not after then
              return finish(end_error)
            end
            if not M.same(before, after) or at ~= after.size then
              return finish('changed')
            end
            finish(nil, { hash = hash.hex(), stat = after })
          end)
        end)
      end
      read()
    end)
  end)
end

return M
