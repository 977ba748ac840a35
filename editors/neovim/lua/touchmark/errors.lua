--- What went wrong, shown once. `:checkhealth touchmark` lists it again.

local M = {}

local told = {}
local list = {}

--- Shows a message, unless one under this key has been shown.
---@param key string
---@param message string
function M.once(key, message)
  if told[key] then
    return
  end
  told[key] = true
  list[#list + 1] = message
  vim.schedule(function()
    vim.notify('touchmark: ' .. message, vim.log.levels.WARN, { title = 'touchmark' })
  end)
end

--- A function that shows what goes wrong in it once, instead of each time it is
--- called: it may be called at every key.
---@param what string
---@param work function
function M.guarded(what, work)
  return function(...)
    local ok, result = pcall(work, ...)
    if ok then
      return result
    end
    M.once(what .. tostring(result), ('%s: %s'):format(what, tostring(result)))
  end
end

--- All of them, the oldest first.
function M.all()
  return list
end

return M
