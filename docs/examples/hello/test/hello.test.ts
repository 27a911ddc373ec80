import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createTestHost } from '@portico/testing';

import hello from '../src/index.ts';

const start = (settings = {}) => createTestHost(hello, { package: import.meta.url, settings });

test('greets by the name and with the greeting that is set', async () => {
    await using host = await start({ greeting: 'Moin' });
    const made = await host.as('operator').post('/greetings', { name: 'Ann' });
    assert.equal(made.status, 201);
    assert.deepEqual(made.data, { id: 1, name: 'Ann', text: 'Moin, Ann' });
    assert.equal(made.headers.get('location'), '/api/plugins/hello/greetings/1');
    assert.deepEqual((await host.as('viewer').get('/greetings/1')).data, made.data);
});

test('lists the newest first', async () => {
    await using host = await start();
    await host.as('admin').post('/greetings', { name: 'Ann' });
    await host.as('admin').post('/greetings', { name: 'Ben' });
    const list = await host.as('viewer').get<{ name: string }[]>('/greetings');
    assert.deepEqual(
        list.data.map(({ name }) => name),
        ['Ben', 'Ann']
    );
    assert.equal(list.headers.get('x-total-count'), '2');
});

test('refuses viewers, long names and what is not there', async () => {
    await using host = await start();
    assert.equal((await host.as('viewer').post('/greetings', { name: 'Ann' })).code, 40300);
    assert.equal((await host.as('admin').post('/greetings', { name: 'x'.repeat(41) })).code, 40001);
    assert.equal((await host.as('viewer').get('/greetings/7')).message, 'There is no greeting 7');
    assert.deepEqual((await host.as('viewer').get('/greetings')).data, []);
});

test('greets each user who logs in', async () => {
    await using host = await start();
    await host.hooks.run('auth.afterLogin', {
        userId: 1,
        username: 'vera',
        ip: null,
        userAgent: null,
        newNetwork: false
    });
    assert.deepEqual((await host.as('viewer').get('/greetings/1')).data, {
        id: 1,
        name: 'vera',
        text: 'Hello, vera'
    });
});

test('keeps nothing of a greeting that could not be written', async () => {
    await using host = await start();
    host.faults.fail('db.write', undefined, { times: 1 });
    assert.equal((await host.as('admin').post('/greetings', { name: 'Ann' })).reason, 'STORAGE_FULL');
    assert.deepEqual((await host.as('viewer').get('/greetings')).data, []);
});
