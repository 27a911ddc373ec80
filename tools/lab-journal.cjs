'use strict';

// A reporter for lab that writes one line of JSON as each test ends. Unlike lab's own JSON, which comes at the end,
// it leaves the right count when the process is cut.

const Fs = require('node:fs');

module.exports = class {
    #path = process.env.PORTICO_TEST_JOURNAL;

    start({ count }) {
        this.#write({ kind: 'start', count });
    }

    test(test) {
        const state = test.err ? 'failed' : test.skipped || test.todo ? 'skipped' : 'passed';
        this.#write({
            kind: 'test',
            title: [...test.path, test.relativeTitle].join(' › '),
            state,
            tries: test.tries,
            ms: test.duration
        });
    }

    end(notebook) {
        this.#write({
            kind: 'end',
            leaks: notebook.leaks ?? [],
            errors: (notebook.errors ?? []).map((error) => error.message)
        });
    }

    #write(line) {
        Fs.appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
    }
};
