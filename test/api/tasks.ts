import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('GET /api/tasks', () => {
    let test: TestPanel;

    before(async () => {
        test = await startPanel();
    });

    after(() => test.close());

    it('lists nothing where nothing was started, and knows no task that is not there', async () => {
        expect((await test.client.get('/api/tasks')).data).to.equal([]);
        for (const path of ['/api/tasks/1', '/api/tasks/x', '/api/tasks/1/events']) {
            expect(await test.client.get(path), path).to.include({ status: 404, code: 40400 });
        }
        expect(await test.client.delete('/api/tasks/1')).to.include({ status: 404, code: 40400 });
        expect(await test.client.get('/api/tasks', { token: null })).to.include({ status: 401, code: 40100 });
    });

    it('refuses what is no filter', async () => {
        for (const query of ['limit=0', 'state=done', 'cursor=x', 'unknown=1']) {
            expect(await test.client.get(`/api/tasks?${query}`), query).to.include({
                status: 400,
                code: 40001
            });
        }
    });
});
