/** A panel with the plugin in it, for a test that kills it: says where its data lies, then runs what it is told. */
import { dirname } from 'node:path';

import { createCronjobRig } from './rig.ts';

const [task] = process.argv.slice(2);
const cron = await createCronjobRig();
const id = await cron.task(JSON.parse(task ?? '{}'));
const { data } = await cron.ask('POST', `/tasks/${id}/run`);
process.stdout.write(
    `${JSON.stringify({ root: dirname(cron.folder), folder: cron.folder, task: id, run: data.id })}\n`
);
