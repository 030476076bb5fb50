import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.server.quota.QuotaUtils;

/**
 * For how long Kafka's own metrics hold back a client. Each line of standard input is answered by one line.
 *
 * rate LIMIT SAMPLES SECONDS, bucket LIMIT SAMPLES SECONDS -> begins anew
 * record MS VALUE -> what happened at that time, and how many milliseconds to wait
 * check MS -> how many milliseconds to wait
 */
public class Throttle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Metrics metrics = new Metrics();
        Sensor sensor = null;
        int number = 0;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            long waits = 0;
            if (words[0].equals("rate") || words[0].equals("bucket")) {
                MetricConfig config = new MetricConfig()
                    .timeWindow(Integer.parseInt(words[3]), TimeUnit.SECONDS)
                    .samples(Integer.parseInt(words[2]))
                    .quota(new Quota(Double.parseDouble(words[1]), true));
                MetricName name = metrics.metricName("metric" + ++number, "group");
                sensor = metrics.sensor("sensor" + number);
                sensor.add(name, words[0].equals("rate") ? new Rate() : new TokenBucket(), config);
            } else {
                long now = Long.parseLong(words[1]);
                try {
                    if (words[0].equals("record"))
                        sensor.record(Double.parseDouble(words[2]), now, true);
                    else
                        sensor.checkQuotas(now);
                } catch (QuotaViolationException violation) {
                    waits = violation.metric().measurable() instanceof TokenBucket
                        ? Math.round(-violation.value() / violation.bound() * 1000)
                        : QuotaUtils.throttleTime(violation, now);
                }
            }
            System.out.println(waits);
        }
    }
}
