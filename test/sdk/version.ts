import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isFailure, requireVersion } from '@portico/sdk';

const row = { version: 7 };

test('a change that names no version, any version or the very version is let through', () => {
    requireVersion(row);
    requireVersion(row, null, undefined);
    requireVersion(row, '*');
    requireVersion(row, '7', 7);
});

test('each version that is named must be the one of the object', () => {
    const isStale = (error: unknown): boolean =>
        isFailure(error) && error.code === 41200 && (error.data as { version: number }).version === 7;
    assert.throws(() => requireVersion(row, '6'), isStale);
    assert.throws(() => requireVersion(row, '7', 6), isStale);
    assert.throws(() => requireVersion(row, '*', 8), isStale);
    assert.throws(() => requireVersion(row, '07'), isStale);
});
