FROM python:3.11-slim

WORKDIR /opt/barnabas
COPY . .
RUN pip install --no-cache-dir -c constraints.txt '.[zookeeper]' \
    && useradd --system --home-dir /var/lib/barnabas --create-home barnabas

USER barnabas
VOLUME /var/lib/barnabas
EXPOSE 9092
STOPSIGNAL SIGTERM

ENTRYPOINT ["barnabas", "serve", "--data", "/var/lib/barnabas/data"]
CMD ["--listen", "0.0.0.0:9092"]
