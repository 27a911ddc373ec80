'use strict';

module.exports = {
    // A test that starts a panel, an engine or npm takes seconds on a busy machine; one that hangs must not take minutes.
    timeout: 30_000,
    'context-timeout': 60_000,

    // Names that appear on the global object while tests run and are not a leak of ours.
    globals: [
        // MikroORM shares these between its copies in one process: its metadata, raw fragments and registry of schemas.
        'mikro-orm-metadata',
        'Symbol(@mikro-orm/core/RawQueryFragment.references)',
        'Symbol(@mikro-orm/core/EntitySchema.REGISTRY)',
        // Zod, by which the official MCP client and server check messages, shares these in the same way.
        '__zod_globalConfig',
        '__zod_globalRegistry',
        // Playwright, which drives the browser, ends its children by it.
        'Symbol(signal-exit emitter)'
    ].join(',')
};
