-- The command is there before `setup` is called; everything else is not loaded.
if vim.g.loaded_touchmark or vim.fn.has('nvim-0.7') == 0 then
  return
end
vim.g.loaded_touchmark = true

vim.api.nvim_create_user_command('Touchmark', function(args)
  require('touchmark.command').run(args.fargs)
end, {
  nargs = '*',
  desc = 'What agents do to the files here',
  complete = function(lead, line)
    return require('touchmark.command').complete(lead, line)
  end,
})

-- For the user's own mappings: `nmap ]a <Plug>(touchmark-next)`.
for _, name in ipairs({ 'review', 'keep', 'undo', 'redo', 'later', 'next', 'previous', 'blame' }) do
  vim.keymap.set('n', ('<Plug>(touchmark-%s)'):format(name), ('<Cmd>Touchmark %s<CR>'):format(name))
end
