-- What needs neither a daemon nor a file of anybody's. Run from this
-- directory's parent, in any Neovim from 0.7 on:
--   nvim --headless -u NONE --cmd 'set rtp^=.' -c 'luafile tests/unit.lua'
-- Ends with exit code 0 if all is as it should be.

local function same(found, wanted, what)
  if not vim.deep_equal(found, wanted) then
    error(('%s: found %s, wanted %s'):format(what, vim.inspect(found), vim.inspect(wanted)), 2)
  end
end

local tests = {}

function tests.frames_come_whole_however_they_are_cut()
  local frames = require('touchmark.frames')
  local messages = { { id = 1 }, { id = 2, text = ('ü\r\n\r\n'):rep(50) }, { id = 3 } }
  local stream = ''
  for _, message in ipairs(messages) do
    stream = stream .. frames.encode(message)
  end
  for _, size in ipairs({ 1, 2, 3, 7, 64, #stream }) do
    local push, bodies = frames.decoder(), {}
    for at = 1, #stream, size do
      vim.list_extend(bodies, assert(push(stream:sub(at, at + size - 1))))
    end
    same(vim.tbl_map(vim.json.decode, bodies), messages, 'pieces of ' .. size)
  end
  local push = frames.decoder()
  same(push('content-length:2\r\nContent-Type: x\r\n\r\n{}C'), { '{}' }, 'other headers')
  for _, wrong in ipairs({ 'X: 1\r\n\r\n', 'Content-Length: 99999999999\r\n\r\n', ('x'):rep(5000) }) do
    local bodies, why = frames.decoder()(wrong)
    same({ bodies, type(why) }, { nil, 'string' }, 'no stream of messages')
  end
end

--- The cases of bindings/conformance/trust, which every client plays.
function tests.others_are_not_trusted()
  local trust = require('touchmark.trust')
  local function owned(found)
    return { uid = found.uid, mode = tonumber(found.mode or '0', 8) }
  end
  local plays = {
    marks = { 'taken', function(case)
      return trust.takes(case, owned(case.directory), owned(case.file))
    end },
    listed = { 'listed', function(case)
      return trust.is_listed(case.list, case.directory)
    end },
    peers = { 'heard', function(case)
      return trust.hears(case, case.peer)
    end },
    sockets = { 'dialled', function(case)
      return trust.refusal(case, owned(case.directory), owned(case.socket)) == nil
    end },
  }
  for name, play in pairs(plays) do
    local file = assert(io.open('../../bindings/conformance/trust/' .. name .. '.json'))
    local cases = vim.json.decode(file:read('*a'))
    file:close()
    assert(#cases > 3, name)
    for _, case in ipairs(cases) do
      same(play[2](case), case[play[1]], name .. ': ' .. case.name)
    end
  end
end

function tests.hashes_are_sha256()
  local sha256 = require('touchmark.sha256')
  same(sha256.of(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 'nothing')
  same(sha256.of('a\0b'), '59b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138', 'a NUL')
  local text = ('The editor\'s own function is the oracle. \255'):rep(40)
  for length = 0, 200 do
    local part = text:sub(1, length)
    same(sha256.of(part), vim.fn.sha256(part), length .. ' bytes')
  end
  local hash = sha256.new()
  for at = 1, #text, 13 do
    hash.update(text:sub(at, at + 12))
  end
  same(hash.hex(), vim.fn.sha256(text), 'in pieces')
end

function tests.lines_are_carried_through_hunks()
  local hunks = require('touchmark.hunks')
  local function after(before, now, lines)
    return hunks.carry(lines, hunks.between(before, now))
  end
  same(after('a\nb\nc\n', 'x\na\nb\nc\n', { [2] = 'k' }), { [3] = 'k' }, 'a line above')
  same(after('a\nb\nc\n', 'b\nc\n', { [1] = 'k', [3] = 'l' }), { [2] = 'l' }, 'a line gone')
  same(after('a\nb\nc\n', 'a\nB\nC\nD\n', { [1] = 'k', [2] = 'l' }), { [1] = 'k' }, 'lines replaced')
  same(after('a\nb\n', 'a\nb\nc\n', { [2] = 'k' }), { [2] = 'k' }, 'a line below')
  same(hunks.lines(hunks.between('a\nb\nc\n', 'a\nX\nY\nc\n')), { [2] = 'changed', [3] = 'changed' }, 'changed')
  same(hunks.lines(hunks.between('a\nb\nc\n', 'a\nc\n')), { [1] = 'removed' }, 'removed')
  same(hunks.lines(hunks.between('a\nb\n', 'b\n')), { [1] = 'removed' }, 'removed at the top')
  for _, pair in ipairs({ { 'a\nb\nc\n', 'a\nX\nc\n' }, { 'a\n', 'a\nb\n' }, { 'a\nb\n', 'b\n' }, { 'a\n', 'a\n' } }) do
    same(hunks.plain(pair[1], pair[2]), hunks.between(pair[1], pair[2]), 'without a diff')
  end
end

function tests.names_travel_and_come_back()
  local names = require('touchmark.names')
  same({ names.member('/w', 'a b.txt') }, { 'path', 'a b.txt' }, 'plain')
  for _, name in ipairs({ 'ü/x', '\255.txt', 'a%20b', 'line\nbreak', '50%' }) do
    local member, uri = names.member('/w', name)
    same(member, 'uri', name)
    same(names.path_of('/w', { path = '?', uri = uri }), name, 'and back')
  end
  same(names.show('a\27[31m\n' .. ('x'):rep(100), 10), 'a?[31m?xx…', 'harmless and short')
end

function tests.sockets_are_where_the_command_looks()
  local uv = vim.uv or vim.loop
  local workspace = require('touchmark.workspace')
  -- printf /abc | sha256sum
  same(workspace.key('/abc'), 'aaaea3613df9f409', 'the key')
  uv.os_unsetenv('TOUCHMARK_SOCKET')
  uv.os_setenv('XDG_RUNTIME_DIR', '/run/user/7')
  same(workspace.socket('/abc'), '/run/user/7/touchmark/aaaea3613df9f409.sock', 'the socket')
  uv.os_unsetenv('XDG_RUNTIME_DIR')
  uv.os_setenv('XDG_CACHE_HOME', 'relative does not count')
  uv.os_setenv('HOME', '/home/u')
  same(workspace.runtime_directory(), '/home/u/.cache/touchmark/run', 'without a runtime directory')
  uv.os_setenv('TOUCHMARK_SOCKET', '/x.sock')
  same(workspace.socket('/abc'), '/x.sock', 'named outright')
  uv.os_unsetenv('TOUCHMARK_SOCKET')
  same(workspace.relative('/w', '/w/a/b'), 'a/b', 'below')
  same(workspace.relative('/w', '/wx/a'), nil, 'beside')
end

function tests.unsaved_lines_are_those_between_what_is_the_same()
  local unsaved = require('touchmark.unsaved')
  same(unsaved.lines(nil), nil, 'nothing known')
  -- The fourth of ten lines; two above it that are new; then the eighth goes.
  local edit = unsaved.changed(nil, 10, 3, 4, 4)
  same(unsaved.lines(edit), { start = 4, ['end'] = 4 }, 'one line')
  edit = unsaved.changed(edit, 12, 1, 1, 3)
  same(unsaved.lines(edit), { start = 2, ['end'] = 4 }, 'added above')
  edit = unsaved.changed(edit, 11, 9, 10, 9)
  same(unsaved.lines(edit), { start = 2, ['end'] = 8 }, 'taken out below')
  same(unsaved.lines(unsaved.changed(nil, 11, 5, 5, 6)), { start = 5, ['end'] = 6 }, 'the seam')
  same(unsaved.lines(unsaved.changed(nil, 11, 0, 0, 1)), { start = 1, ['end'] = 1 }, 'at the top')
  same(unsaved.lines(unsaved.changed(nil, 11, 10, 10, 11)), { start = 10, ['end'] = 10 }, 'at the end')
end

function tests.lines_of_the_saved_file_are_found_in_the_buffer()
  local unsaved = require('touchmark.unsaved')
  -- The third of ten lines becomes three.
  local edit = unsaved.changed(nil, 12, 2, 3, 5)
  local shown, saved = {}, {}
  for _, line in ipairs({ 1, 2, 3, 4, 10 }) do
    shown[#shown + 1] = unsaved.shown(edit, 12, line) or 'none'
  end
  for _, line in ipairs({ 1, 2, 3, 5, 6, 12 }) do
    saved[#saved + 1] = unsaved.saved(edit, 12, line) or 'none'
  end
  same(shown, { 1, 2, 'none', 6, 12 }, 'in the buffer')
  same(saved, { 1, 2, 'none', 'none', 4, 10 }, 'in the saved file')
  same(unsaved.shown(nil, 12, 1), nil, 'nothing known')
end

function tests.long_paths_show_their_end()
  local names = require('touchmark.names')
  same(names.tail('src/a.lua', 9), 'src/a.lua', 'it fits')
  same(names.tail('a/long/päth/file', 8), '…th/file', 'it does not')
  same(names.tail('a\27[31m', 20), 'a?[31m', 'harmless')
end

function tests.changes_are_grouped()
  local groups = require('touchmark.groups')
  local function change(path, session, command)
    return { path = path, id = path, command = command, authors = { { kind = 'agent', session = session } } }
  end
  local all = { change('a', 's'), change('d/b', 't', 'c1') }
  for n = 1, 8 do
    all[#all + 1] = change('gen/' .. n, 's', 'c2')
  end
  local function told(by)
    return vim.tbl_map(function(group)
      local inner = #group.inner > 0 and ' > ' .. group.inner[1].name .. ' ' .. #group.inner[1].all or ''
      return ('%s %s %d%s%s'):format(group.by, group.name, #group.own, group.is_many and ' many' or '', inner)
    end, groups.of(all, by))
  end
  same(told('file'), { 'file a 1', 'file d/b 1', 'command c2 8 many' }, 'by file')
  same(told('directory'), { 'directory ./ 1', 'directory d/ 1', 'directory gen/ 0 > c2 8' }, 'by directory')
  same(told('command'), { 'edits  1', 'command c1 1', 'command c2 8 many' }, 'by command')
  same(told('session'), { 'session s 1 > c2 8', 'session t 1' }, 'by session')
end

function tests.a_claim_is_about_what_was_shown()
  local likely = require('touchmark.likely')
  local function hunk(path, id, command, line, after)
    local lines = { start = line, ['end'] = line }
    local authors = { { kind = 'agent', session = 's' } }
    return { path = path, id = id, command = command, lines = lines, before = '', after = after or 'x\n', authors = authors, likely = true }
  end
  local one, other, gone, mixed = hunk('a', '1', 'c5', 1), hunk('a', '2', 'c5', 7), hunk('b', '3', 'c5', 1, ''), hunk('c', '4', nil, 1)
  local queue = { one, other, gone, mixed }
  local function said(some, session)
    local doubts = likely.of(vim.deepcopy(some), queue)
    return #doubts == 1 and likely.claims(doubts[1], session)
  end
  same(said({ one, other, gone }), { { command = 'c5', paths = { 'a' } } }, 'whole versions')
  same(said({ other }, 's'), { { session = 's', paths = { 'a' }, lines = { start = 7, ['end'] = 7 } } }, 'a part')
  same(said({ mixed }, 's'), { { session = 's', paths = { 'c' }, lines = { start = 1, ['end'] = 1 } } }, 'several commands')
  same(likely.of({ gone }, queue), {}, 'what was only removed')
end

function tests.what_a_change_without_lines_did()
  local whole = require('touchmark.whole')
  local file, run, link = '100644', '100755', '120777'
  for _, case in ipairs({
    { 'mode 644 → 755', file, run },
    { 'mode 644 → 4755', file, '104755' },
    { 'symlink → b', nil, link, nil, 'b' },
    { 'symlink a → b', link, link, 'a', 'b' },
    { 'removed symlink → a', link, nil, 'a' },
    { 'file replaced by symlink → b', file, link, nil, 'b' },
    { 'symlink → a replaced by file', link, file, 'a' },
    { 'new file', nil, file },
    { 'removed file', file },
    { 'content changed', file, file },
    { 'symlink → ?[31m', nil, link, nil, '\27[31m' },
  }) do
    local change = { modeBefore = case[2], mode = case[3], targetBefore = case[4], target = case[5] }
    same(whole.what(change), case[1], case[1])
  end
  for case, wanted in pairs({ [file .. run] = true, [file .. file] = false, [link .. file] = false, [file .. link] = false }) do
    same(whole.is_mode({ modeBefore = case:sub(1, 6), mode = case:sub(7) }), wanted, case)
  end
  same({ whole.is_mode({ modeBefore = file }), whole.is_mode({ mode = file }) }, { false, false }, 'created and removed')
  same({ whole.is_file({ mode = run }), whole.is_file({ mode = link }), whole.is_file({}) }, { true, false, false }, 'files')
end

function tests.how_long_ago()
  local names = require('touchmark.names')
  local now = os.time()
  for text, seconds in pairs({ ['just now'] = 30, ['2 min ago'] = 150, ['3 h ago'] = 3 * 3600 + 5, ['1 day ago'] = 90000 }) do
    same(names.ago((now - seconds) * 1000), text, text)
  end
end

function tests.options_are_checked()
  local config = require('touchmark.config')
  same(config.apply({ start = 'when git', signs = false }), {}, 'right')
  same({ config.options.start, config.options.signs.enabled, config.options.notify }, { 'when git', false, true }, 'in force')
  same(#config.apply({ start = 'maybe', unknown = 1, notify = 3 }), 3, 'wrong')
  same(config.options.start, 'never', 'the default stays')
end

local failed = 0
for name, test in pairs(tests) do
  local ok, why = xpcall(test, debug.traceback)
  failed = failed + (ok and 0 or 1)
  io.stdout:write(ok and 'ok      ' or 'FAILED  ', name, ok and '' or '\n' .. why, '\n')
end
vim.cmd(failed == 0 and 'qall!' or 'cquit!')
