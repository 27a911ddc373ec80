/** What the screens of deployments do. */
import { call } from '../../api/client.ts';
import { carryOut } from '../../kit/dialogs/carry-out.ts';
import { base } from './deploy-view.ts';

/** Does a thing, tells what came of it, and reads everything of the plugin again. @param title - its name in words */
export function act(
    path: string,
    method: string,
    below: string,
    title: string,
    body: object = {}
): Promise<void> {
    return carryOut(title, base, () => call(method, path + below, { body }));
}
