'use strict';

module.exports = {
    // A test that starts a panel, an engine or npm takes seconds on a busy machine; one that hangs must not take minutes.
    timeout: 30_000,
    'context-timeout': 60_000,

    // Names that appear on the global object while tests run and are not a leak of ours.
    globals: [
        // MikroORM counts its copies in a process and keeps its table of entity managers here.
        '__MIKRO_ORM_VERSION__'
    ].join(',')
};
