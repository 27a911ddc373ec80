/** How the last deployment of a preview went. */
import { useRead } from '../../api/queries.ts';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { Log } from '../../kit/display/log.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { base, type Deployment, tones } from './deploy-view.ts';
import { Steps } from './steps.tsx';
import { Why } from './why.tsx';

/** Its state, why it failed, its steps and its log. @param number - of the pull request */
export function Attempt({
    id,
    number,
    onClose
}: {
    readonly id: number;
    readonly number: number;
    readonly onClose: () => void;
}) {
    const path = `${base}/deployments/${id}`;
    const { data, error } = useRead<Deployment>(path);
    return (
        <Dialog title={t('Preview of pull request #{number}', { number })} onClose={onClose} isWide>
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <p>
                        <Badge text={data.state} tone={tones[data.state]} />
                    </p>
                    <Why reason={data.reason} />
                    <Steps steps={data.steps} />
                </>
            )}
            <Log path={`${path}/log`} title={t('Log')} />
        </Dialog>
    );
}
