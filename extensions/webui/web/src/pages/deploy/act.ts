/** What the screens of deployments do. */
import { call } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { toast, toastFailure } from '../../kit/toast.tsx';
import { t } from '../../words/t.ts';
import { base } from './deploy-view.ts';

/** Does a thing, tells what came of it, and reads everything of the plugin again. @param title - its name in words */
export async function act(
    path: string,
    method: string,
    below: string,
    title: string,
    body: object = {}
): Promise<void> {
    await call(method, path + below, { body }).then(
        () => toast(t('Done: {what}', { what: title })),
        toastFailure
    );
    await invalidate(base);
}
